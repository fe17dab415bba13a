"""Guides: public maps that do not share noise with a signal, and make its denoised map better."""
