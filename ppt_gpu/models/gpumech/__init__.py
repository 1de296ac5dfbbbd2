"""GPUMech, GCoM, MDM."""
