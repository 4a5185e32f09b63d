//! Where renderings go: standard output, or files that are replaced whole or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::document::Report;
use super::render::{Format, Options, render};
use super::text;
use crate::error::{Error, Result};

/// What to write and where.
#[derive(Debug, Clone)]
pub struct Outputs {
    /// The rendering of the result.
    pub format: Format,
    /// Its file; standard output without one.
    pub output: Option<PathBuf>,
    /// More renderings.
    pub reports: Vec<(Format, PathBuf)>,
    /// What they show.
    pub options: Options,
}

impl Outputs {
    /// Checks that every file could be written, before an evaluation is spent on it.
    ///
    /// # Errors
    /// A usage error if one file is named twice; otherwise unfinished, for want of a folder to write to.
    pub fn check(&self, run_log: Option<&Path>) -> Result<()> {
        let renderings = self.output.iter().chain(self.reports.iter().map(|(_, path)| path)).map(PathBuf::as_path);
        check(renderings.chain(run_log))
    }

    /// Writes all renderings; files first, so that whoever reads standard output finds them.
    ///
    /// # Errors
    /// Unfinished if a file cannot be written.
    pub fn write(&self, report: &Report) -> Result<()> {
        let plain = Options { styled: false, ..self.options.clone() };
        for (format, path) in &self.reports {
            replace(path, render(report, *format, &plain)?.as_bytes())?;
        }
        match &self.output {
            Some(path) => replace(path, render(report, self.format, &plain)?.as_bytes()),
            None => stdout(render(report, self.format, &self.options)?.as_bytes()),
        }
    }
}

/// Checks that files could be written.
///
/// # Errors
/// A usage error if one file is named twice; otherwise unfinished, for want of a folder to write to.
pub fn check<'a>(paths: impl Iterator<Item = &'a Path>) -> Result<()> {
    let mut places = std::collections::HashSet::new();
    for path in paths {
        if path.is_dir() {
            return Err(Error::unfinished(format!("{}: this is a folder, not a file to write to", path.display())));
        }
        let folder = folder(path);
        if !folder.is_dir() {
            return Err(Error::unfinished(format!("{}: there is no folder {}", path.display(), folder.display())));
        }
        if !places.insert(place(path)) {
            return Err(Error::usage(format!("{}: two outputs cannot share one file", path.display())));
        }
    }
    Ok(())
}

/// Where a path leads, however it is spelt.
fn place(path: &Path) -> PathBuf {
    let folder = folder(path).canonicalize().unwrap_or_else(|_| folder(path));
    let named = path.file_name().map_or_else(|| path.to_owned(), |name| folder.join(name));
    named.canonicalize().unwrap_or(named)
}

/// Writes a result to standard output. A reader that has gone is no fault.
///
/// # Errors
/// Unfinished if the output cannot be written for another reason.
pub fn stdout(bytes: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::unfinished(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Puts a file in the place of another at once: a reader sees the old one or the new one. What is no regular file,
/// such as a pipe, is written to as it is.
///
/// # Errors
/// Unfinished, with the path and the cause.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let fault = |error: io::Error| Error::unfinished(format!("{}: {error}", path.display()));
    // A link stays a link: what it leads to is replaced.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let existing = fs::metadata(&place).ok();
    if existing.as_ref().is_some_and(|existing| !existing.is_file()) {
        return OpenOptions::new().write(true).open(&place).and_then(|mut file| file.write_all(bytes)).map_err(fault);
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".mcpeval-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder(&place)).map_err(fault)?;
    file.write_all(bytes).map_err(fault)?;
    if let Some(existing) = existing {
        file.as_file().set_permissions(existing.permissions()).map_err(fault)?;
    }
    file.persist(&place).map_err(|error| fault(error.error))?;
    Ok(())
}

/// Puts files into a folder, which is made if it is missing: all of them, or none if one cannot be written. A name that is
/// taken is replaced with `force` alone.
///
/// # Errors
/// A usage error if a name is taken; otherwise unfinished, with the path and the cause.
pub fn replace_all(folder: &Path, files: &[(&str, &[u8])], force: bool) -> Result<()> {
    let fault = |path: &Path, error: &io::Error| Error::unfinished(format!("{}: {error}", path.display()));
    let taken = |path: &Path| {
        Error::usage(format!("{} exists; replace it with --force, or name another folder", path.display()))
    };
    let places: Vec<PathBuf> = files.iter().map(|(name, _)| folder.join(name)).collect();
    for place in &places {
        match place.symlink_metadata() {
            Ok(_) if !force => return Err(taken(place)),
            Ok(found) if found.is_dir() => {
                return Err(Error::unfinished(format!("{}: this is a folder, not a file", place.display())));
            }
            _ => {}
        }
    }
    if files.is_empty() {
        return Ok(());
    }
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(fault(folder, &error)),
        _ => {}
    }
    // What can fail for want of space or permission fails before anything has its name.
    let mut staged = Vec::with_capacity(files.len());
    for ((_, bytes), place) in files.iter().zip(&places) {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".mcpeval-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let mut file = builder.tempfile_in(folder).map_err(|error| fault(place, &error))?;
        file.write_all(bytes).map_err(|error| fault(place, &error))?;
        staged.push(file.into_temp_path());
    }
    for (done, (file, place)) in staged.into_iter().zip(&places).enumerate() {
        let named = if force { file.persist(place) } else { file.persist_noclobber(place) };
        if let Err(error) = named {
            // Somebody else was faster. What was new is taken back; what was replaced is whole.
            if !force {
                places.iter().take(done).for_each(|place| _ = fs::remove_file(place));
            }
            let is_taken = error.error.kind() == io::ErrorKind::AlreadyExists;
            return Err(if is_taken { taken(place) } else { fault(place, &error.error) });
        }
    }
    Ok(())
}

/// Writes lines that only the user may read.
///
/// # Errors
/// Unfinished, with the path and the cause.
pub fn private(path: &Path, lines: &[String]) -> Result<()> {
    let fault = |error: io::Error| Error::unfinished(format!("{}: {error}", path.display()));
    // A temporary file is created for its owner alone, and keeps that when it is renamed.
    let mut file = tempfile::Builder::new().prefix(".mcpeval-").tempfile_in(folder(path)).map_err(fault)?;
    for line in lines {
        writeln!(file, "{}", text::neutralised(line)).map_err(fault)?;
    }
    file.persist(path).map_err(|error| fault(error.error))?;
    Ok(())
}

fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::assemble::{Floors, assemble};
    use super::super::document::Label;
    use super::super::tests_support::Example;
    use super::*;

    fn outputs(output: Option<PathBuf>, reports: Vec<(Format, PathBuf)>) -> Outputs {
        Outputs { format: Format::Json, output, reports, options: Options { styled: true, ..Options::default() } }
    }

    #[test]
    fn writes_every_rendering_and_never_colours_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let (json, text) = (folder.path().join("a.json"), folder.path().join("a.txt"));
        let report = assemble(&Example::worked().facts(), Label::new("shop").unwrap(), &Floors::default()).report;
        let outputs = outputs(Some(json.clone()), vec![(Format::Text, text.clone())]);
        outputs.check(None).unwrap();
        outputs.write(&report).unwrap();
        assert_eq!(fs::read_to_string(json).unwrap(), report.to_json().unwrap());
        let text = fs::read_to_string(text).unwrap();
        assert!(text.starts_with("shop readiness 65/100") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn replaces_what_a_link_leads_to_and_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left behind");
        replace(Path::new("/dev/null"), b"gone").unwrap();
    }

    #[test]
    fn several_files_are_written_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("issues");
        replace_all(&target, &[], false).unwrap();
        assert!(!target.exists());
        replace_all(&target, &[("a", b"1"), ("b", b"2")], false).unwrap();
        let error = replace_all(&target, &[("c", b"3"), ("b", b"4")], false).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains("b exists"), "{error}");
        assert_eq!((target.join("c").exists(), fs::read_to_string(target.join("b")).unwrap()), (false, "2".to_owned()));
        replace_all(&target, &[("c", b"3"), ("b", b"4")], true).unwrap();
        assert_eq!(fs::read_to_string(target.join("b")).unwrap(), "4");
        assert_eq!(fs::read_dir(&target).unwrap().count(), 3, "nothing is left behind");
        fs::create_dir(target.join("d")).unwrap();
        assert_eq!(replace_all(&target, &[("e", b""), ("d", b"")], true).unwrap_err().exit_code(), 3);
        assert_eq!(replace_all(&folder.path().join("no/such"), &[("a", b"")], false).unwrap_err().exit_code(), 3);
        assert!(!target.join("e").exists());
        // A link is replaced, not followed.
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), target.join("l")).unwrap();
        assert_eq!(replace_all(&target, &[("l", b"x")], false).unwrap_err().exit_code(), 2);
        replace_all(&target, &[("l", b"x")], true).unwrap();
        assert!(!folder.path().join("elsewhere").exists());
    }

    #[test]
    fn a_private_file_is_for_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log");
        fs::write(&file, "old").unwrap();
        private(&file, &["a\u{1b}b".to_owned()]).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "a\\u{1b}b\n");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn checks_places_before_an_evaluation_is_spent() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        assert_eq!(outputs(Some(folder.path().to_owned()), vec![]).check(None).unwrap_err().exit_code(), 3);
        assert_eq!(outputs(Some(folder.path().join("no/a")), vec![]).check(None).unwrap_err().exit_code(), 3);
        assert_eq!(outputs(Some(file.clone()), vec![(Format::Text, file)]).check(None).unwrap_err().exit_code(), 2);
        assert!(replace(&folder.path().join("no/a"), b"").unwrap_err().to_string().contains("no/a"));
    }
}
