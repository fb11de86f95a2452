"""Motion with captions on disk: readers of sources, conversion to one body, one memory-mapped format, words and windows for training."""
