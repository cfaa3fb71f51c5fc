//! Settings, components and the OPTIONS file.
