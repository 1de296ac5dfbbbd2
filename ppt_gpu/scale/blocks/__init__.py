"""Which blocks stand for the grid."""
