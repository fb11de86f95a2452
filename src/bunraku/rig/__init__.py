"""How skin follows bone: rigs, characters, and the mannequin built from any skeleton."""
