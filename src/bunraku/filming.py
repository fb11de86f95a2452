"""The door to films: a motion, seen on a body, as a video or a contact sheet. `bunraku.api` offers it."""
