//! What may still be spent: requests, sessions, bytes, time.
