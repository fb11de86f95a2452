"""Words into numbers: text encoders behind one interface, and the cache in front of them."""
