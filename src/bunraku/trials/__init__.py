"""How good is a model? Test cases from held-out motion, drawn, measured against the truth and against chance, and reported."""
