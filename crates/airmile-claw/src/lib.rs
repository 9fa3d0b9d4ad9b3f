//! CLAW between real hosts.
