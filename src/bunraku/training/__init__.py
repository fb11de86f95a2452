"""Learning from captured motion: what is drawn, what is asked of the network, and the loop that all training shares."""
