//! What to start, and why it could not be started.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Variables with this prefix are mcpeval's own and never inherited by a child (docs/standard.md).
const OWN_PREFIX: &[u8] = b"MCPEVAL_";

/// Where programs are looked for, and where if nobody says.
const PATH: &str = "PATH";
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A child process to start.
#[derive(Clone)]
pub struct Launch {
    /// A path, or a name looked up in `PATH`.
    pub program: OsString,
    /// Its arguments, without the program's name.
    pub args: Vec<OsString>,
    /// Explicit additions to the environment; they may hold anything.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory; ours if absent.
    pub cwd: Option<PathBuf>,
    /// Variables that the child must not inherit, beyond every `MCPEVAL_*`.
    pub withheld: Vec<OsString>,
}

impl fmt::Debug for Launch {
    /// Arguments and values of variables may be secrets, so they are counted and named, not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("env", &self.env.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("cwd", &self.cwd)
            .field("withheld", &self.withheld)
            .finish()
    }
}

/// Why a child could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No program at all.
    #[error("the command is empty; name a program after --")]
    Empty,
    /// Neither a path nor a name in `PATH`.
    #[error("command not found: {program}; check its spelling and that it is installed and on PATH")]
    NotFound {
        /// The program as given.
        program: String,
    },
    /// The file may not be executed, or is no program.
    #[error("{program} is not executable; check that it is a program and has the execute permission")]
    NotExecutable {
        /// The program as given.
        program: String,
    },
    /// The file is there, but what should run it is not.
    #[error(
        "{program} exists but could not be started; check that the interpreter named in its first line is installed"
    )]
    NoInterpreter {
        /// The program as given.
        program: String,
    },
    /// The working directory is no directory.
    #[error("the working directory {path} does not exist or is no directory; check --cwd or cwd")]
    NoDirectory {
        /// The directory as given.
        path: String,
    },
    /// Anything else the system said.
    #[error("{program} could not be started: {source}")]
    Other {
        /// The program as given.
        program: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Launch {
    /// The command, leading its own process group, with all three pipes.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, _) in std::env::vars_os() {
            if self.withholds(&name) {
                command.env_remove(name);
            }
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        command
    }

    fn withholds(&self, name: &OsStr) -> bool {
        name.as_encoded_bytes().starts_with(OWN_PREFIX) || self.withheld.iter().any(|withheld| withheld == name)
    }

    /// The sentence for what the system said to a start.
    pub(super) fn error(&self, source: io::Error) -> LaunchError {
        let program = printable(&self.program);
        if let Some(cwd) = self.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            return LaunchError::NoDirectory { path: printable(cwd.as_os_str()) };
        }
        // A name without a separator is looked up in PATH, whatever lies in the working directory.
        if self.program.is_empty() {
            return LaunchError::Empty;
        }
        let is_path = self.program.as_encoded_bytes().contains(&b'/');
        match source.kind() {
            io::ErrorKind::NotFound if is_path && self.place().exists() => LaunchError::NoInterpreter { program },
            io::ErrorKind::NotFound => LaunchError::NotFound { program },
            io::ErrorKind::PermissionDenied => LaunchError::NotExecutable { program },
            _ if source.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
                LaunchError::NotExecutable { program }
            }
            _ => LaunchError::Other { program, source },
        }
    }

    /// The file that a start would run, found as the child finds it; none if there is none.
    pub fn executable(&self) -> Option<PathBuf> {
        if self.program.as_encoded_bytes().contains(&b'/') {
            return Some(self.place()).filter(|path| is_program(path));
        }
        let given = self.env.iter().rev().find(|(name, _)| name == PATH).map(|(_, value)| value.clone());
        let inherited = || std::env::var_os(PATH).filter(|_| !self.withholds(OsStr::new(PATH)));
        let folders = given.or_else(inherited).unwrap_or_else(|| DEFAULT_PATH.into());
        std::env::split_paths(&folders)
            .map(|folder| self.from(folder.join(&self.program)))
            .find(|path| is_program(path))
    }

    /// The arguments that name a regular file as the child sees it, in their order.
    pub fn argument_files(&self) -> impl Iterator<Item = PathBuf> {
        self.args.iter().map(|argument| self.from(argument.into())).filter(|path| path.is_file())
    }

    /// A path as the child takes it, which has changed its directory by then.
    fn from(&self, path: PathBuf) -> PathBuf {
        self.cwd.as_ref().map_or_else(|| path.clone(), |cwd| cwd.join(&path))
    }

    /// Where a program given as a path is looked for: the child has changed its directory by then.
    fn place(&self) -> PathBuf {
        self.cwd.as_deref().unwrap_or(Path::new("")).join(&self.program)
    }
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// A name for a sentence on a terminal: no control characters.
fn printable(name: &OsStr) -> String {
    name.to_string_lossy().chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(program: &str) -> Launch {
        Launch { program: program.into(), args: Vec::new(), env: Vec::new(), cwd: None, withheld: Vec::new() }
    }

    fn failure(launch: &Launch) -> LaunchError {
        match launch.command().spawn() {
            Ok(mut child) => {
                let status = child.wait();
                panic!("started and ended with {status:?}")
            }
            Err(error) => launch.error(error),
        }
    }

    #[test]
    fn an_unknown_command_is_told_apart_from_what_is_no_program() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        std::fs::write(&plain, "#!/bin/sh\n").unwrap();
        assert!(matches!(failure(&launch("no-such-command-here")), LaunchError::NotFound { .. }));
        assert!(matches!(failure(&launch("./no/such/path")), LaunchError::NotFound { .. }));
        assert!(matches!(failure(&launch(plain.to_str().unwrap())), LaunchError::NotExecutable { .. }));
        assert!(matches!(failure(&launch(folder.path().to_str().unwrap())), LaunchError::NotExecutable { .. }));
    }

    #[test]
    fn a_missing_interpreter_and_a_missing_directory_have_their_own_sentences() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(failure(&launch(script.to_str().unwrap())), LaunchError::NoInterpreter { .. }));

        let mut elsewhere = launch("true");
        elsewhere.cwd = Some(folder.path().join("missing"));
        let error = failure(&elsewhere);
        assert!(matches!(error, LaunchError::NoDirectory { .. }));
        assert!(error.to_string().contains("working directory"));
    }

    #[test]
    fn own_variables_are_withheld_whoever_set_them() {
        let mut launch = launch("true");
        launch.withheld = vec!["TOKEN".into()];
        for (name, withheld) in
            [("MCPEVAL_HOME", true), ("MCPEVAL_", true), ("TOKEN", true), ("TOKENS", false), ("XMCPEVAL_A", false)]
        {
            assert_eq!(launch.withholds(OsStr::new(name)), withheld, "{name}");
        }
    }

    #[test]
    fn the_files_of_a_command_are_those_that_the_child_finds() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        for (name, mode) in [("a/serve", 0o644), ("b/serve", 0o755), ("b/data", 0o600), ("sub/x", 0o755)] {
            std::fs::create_dir_all(place(name).parent().unwrap()).unwrap();
            std::fs::write(place(name), name).unwrap();
            std::fs::set_permissions(place(name), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = std::env::join_paths([place("none"), place("a"), place("b")]).unwrap();
        let mut command = launch("serve");
        command.env = vec![("PATH".into(), "/none".into()), ("PATH".into(), path)];
        assert_eq!(command.executable(), Some(place("b/serve")), "the last PATH counts, and only programs do");
        command.env.clear();
        assert_eq!(command.executable(), None);
        assert!(launch("sh").executable().is_some_and(|path| path.is_absolute()));

        let mut near = launch("./x");
        near.cwd = Some(place("sub"));
        near.args = ["../b/data", "--flag", "", "..", "no/file", "x"].map(OsString::from).to_vec();
        assert_eq!(near.executable(), Some(place("sub/./x")));
        assert_eq!(near.argument_files().collect::<Vec<_>>(), [place("sub/../b/data"), place("sub/x")]);
    }

    #[test]
    fn arguments_are_never_shown() {
        let mut secret = launch("no-such-command-here");
        secret.args = vec!["--token=hunter2".into()];
        secret.env = vec![("TOKEN".into(), "hunter2".into())];
        assert!(!format!("{secret:?}").contains("hunter2"));
        assert!(!failure(&secret).to_string().contains("hunter2"));
        let mut nul = launch("true");
        nul.args = vec!["hunter2\0".into()];
        assert!(!failure(&nul).to_string().contains("hunter2"));
    }
}
