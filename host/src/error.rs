//! What can go wrong for a user, and the exit code it becomes.

/// An error that ends a command. Each is one sentence with the place and the way out; argument values are
/// never quoted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Arguments, configuration, manifest, standard, document, component, unknown tool: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The target, the budget, a component or the machine did not allow an end: exit code 3.
    #[error("{0}")]
    Unfinished(String),
    /// The evaluation was ended by a signal of this number: exit code 128 and that number.
    #[error("ended by signal {0}")]
    Interrupted(i32),
}

impl Error {
    /// A usage error.
    pub fn usage(text: impl Into<String>) -> Self {
        Self::Usage(text.into())
    }

    /// Something that could not be completed.
    pub fn unfinished(text: impl Into<String>) -> Self {
        Self::Unfinished(text.into())
    }

    /// The same error, and what it is about before its sentence.
    #[must_use]
    pub fn about(self, subject: &str) -> Self {
        match self {
            Self::Usage(text) => Self::Usage(format!("{subject}: {text}")),
            Self::Unfinished(text) => Self::Unfinished(format!("{subject}: {text}")),
            Self::Interrupted(signal) => Self::Interrupted(signal),
        }
    }

    /// The exit code of the command.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Unfinished(_) => 3,
            Self::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(255),
        }
    }
}

/// Result of a command.
pub type Result<T, E = Error> = std::result::Result<T, E>;
