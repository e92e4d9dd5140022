"""Individual accounting: filters, odometers, per-record epsilons."""
