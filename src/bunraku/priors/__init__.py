"""What knows how things move: video diffusion models behind one interface, which lend their taste to motion."""
