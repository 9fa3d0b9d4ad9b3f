//! The tracker as a whole: small logs checked by hand, and properties.
