"""Which machine instructions do what PTX says."""
