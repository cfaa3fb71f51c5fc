//! Which files to rewrite (pure pickers), and what survives a rewrite (pure rules).
