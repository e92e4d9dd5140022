"""Losses on a lattice: discretised steps, their convolutions and what both are off by."""
