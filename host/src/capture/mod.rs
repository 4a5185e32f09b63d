//! Recording real traffic: its shape, never its content.
