//! System errors that name the attempted operation.

use std::fmt;
use std::io;

/// The attempted operation, the system's error, and a remedy if one is known.
#[derive(Debug, thiserror::Error)]
pub struct SystemError {
    /// The attempted operation.
    pub attempt: String,
    /// The system's error.
    pub source: io::Error,
    /// What to do; `None` if the operation usually works.
    pub remedy: Option<&'static str>,
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.attempt, self.source)?;
        self.remedy.map_or(Ok(()), |remedy| write!(f, "\n{remedy}"))
    }
}

/// Adds the operation to an error.
pub trait Attempt<T> {
    /// Adds the attempted operation.
    ///
    /// # Errors
    /// The operation failed.
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T, SystemError>;

    /// Adds the attempted operation, and a remedy.
    ///
    /// # Errors
    /// The operation failed.
    fn refused(self, what: impl FnOnce() -> String, remedy: &'static str)
    -> Result<T, SystemError>;
}

impl<T, E: Into<io::Error>> Attempt<T> for Result<T, E> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T, SystemError> {
        self.map_err(|e| SystemError { attempt: what(), source: e.into(), remedy: None })
    }

    fn refused(
        self,
        what: impl FnOnce() -> String,
        remedy: &'static str,
    ) -> Result<T, SystemError> {
        self.map_err(|e| SystemError { attempt: what(), source: e.into(), remedy: Some(remedy) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attempt_comes_before_the_answer_and_the_remedy_after() {
        let failed = || Err::<(), _>(io::Error::from(io::ErrorKind::NotFound));
        let what = || "cannot open x".to_owned();
        let text = |result: Result<(), SystemError>| result.unwrap_err().to_string();
        assert_eq!(text(failed().attempt(what)), "cannot open x: entity not found");
        let refused = text(failed().refused(what, "Make it."));
        assert_eq!(refused, "cannot open x: entity not found\nMake it.");
    }
}
