"""Non-negative SURE-LET: candidates with their Jacobians, and the combination of least risk."""
