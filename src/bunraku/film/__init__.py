"""Films and contact sheets of motions: who acts, from where it is seen, on which ground."""
