"""Counts: leave-one-out empirical Bayes for non-negative maps."""
