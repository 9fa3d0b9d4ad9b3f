//! emulate
