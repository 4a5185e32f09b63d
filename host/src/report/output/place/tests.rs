use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

fn refusal(path: &Path) -> (u8, String) {
    match Places::new(&Inputs::default()).result(Some(path)) {
        Ok(destination) => panic!("{destination:?}"),
        Err(error) => (error.exit_code(), error.to_string()),
    }
}

fn pipe(folder: &Path) -> PathBuf {
    let path = folder.join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    path
}

fn count(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_link_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    symlink("file", &link).unwrap();
    for text in ["first", "second"] {
        replace(&link, text.as_bytes()).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    assert_eq!(count(folder.path()), 2, "nothing is left behind");
}

#[test]
fn a_link_that_leads_nowhere_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (lost, circle) = (folder.path().join("lost"), folder.path().join("circle"));
    symlink("no/file", &lost).unwrap();
    symlink("circle", &circle).unwrap();
    let (code, words) = refusal(&lost);
    assert_eq!(code, 3);
    assert!(words.contains("this link leads to") && words.ends_with("there is no folder for it"), "{words}");
    let (code, words) = refusal(&circle);
    assert_eq!((code, words), (3, format!("{}: these links lead in a circle; write elsewhere", circle.display())));
}

#[test]
fn a_private_file_is_for_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log");
    fs::write(&file, "old").unwrap();
    let inputs = Inputs::default();
    Places::new(&inputs).private(&file).unwrap().write_lines(&["a\u{1b}b".to_owned()]).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "a\\u{1b}b\n");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(Places::new(&inputs).private(Path::new("-")).unwrap_err().exit_code(), 2);
    // A device stays what it is.
    Places::new(&inputs).private(Path::new("/dev/null")).unwrap().write_lines(&["gone".to_owned()]).unwrap();
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}

#[test]
fn places_are_checked_before_anything_is_spent() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("plain"), "").unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    for (path, words) in [
        (folder.path().to_owned(), "this is a folder, not a file to write to"),
        (at("new/"), "this names a folder, not a file to write to"),
        (at("no/a"), "there is no folder"),
        (at("plain/a"), "there is no folder"),
        (at("socket"), "this is a socket, which is not written to; write to a file"),
        (at(&"a".repeat(300)), "this name is too long; choose a shorter one"),
    ] {
        let (code, told) = refusal(&path);
        assert!(code == 3 && told.starts_with(&format!("{}: {words}", path.display())), "{code} {told}");
    }
}

#[test]
fn two_outputs_do_not_share_one_file_but_a_device() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    symlink("file", &link).unwrap();
    let inputs = Inputs::default();
    let mut places = Places::new(&inputs);
    places.result(Some(&file)).unwrap();
    let error = places.result(Some(&link)).unwrap_err();
    assert!(error.exit_code() == 2 && error.to_string().contains("two outputs cannot share one file"), "{error}");
    places.result(Some(Path::new("/dev/null"))).unwrap();
    places.result(Some(Path::new("/dev/null"))).unwrap();
}

#[test]
fn an_input_is_no_output_by_whatever_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("manifest"), "kept").unwrap();
    fs::hard_link(at("manifest"), at("twin")).unwrap();
    symlink("manifest", at("link")).unwrap();
    let mut inputs = Inputs::default();
    inputs.add("the manifest", Some(&at("manifest")));
    inputs.add("the corpus", Some(&at("missing")));
    inputs.add("the standard", Some(Path::new("/dev/null")));
    for name in ["manifest", "twin", "link"] {
        let error = Places::new(&inputs).result(Some(&at(name))).unwrap_err();
        let words = format!("{}: this is the manifest that is read; write elsewhere", at(name).display());
        assert_eq!((error.exit_code(), error.to_string()), (2, words));
        assert_eq!(Places::new(&inputs).private(&at(name)).unwrap_err().exit_code(), 2);
    }
    for path in [at("missing"), "/dev/null".into()] {
        Places::new(&inputs).result(Some(&path)).unwrap();
    }
}

#[test]
fn a_pipe_is_open_from_the_check_on() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, link) = (pipe(folder.path()), folder.path().join("link"));
    symlink("pipe", &link).unwrap();
    let (code, words) = refusal(&link);
    assert_eq!(code, 3);
    assert!(words.starts_with(&format!("{}: nobody reads this pipe", link.display())), "{words}");

    let mut reader = crate::notation::open(&pipe).unwrap();
    let inputs = Inputs::default();
    let destination = Places::new(&inputs).result(Some(&link)).unwrap();
    // An end would be told by zero bytes.
    assert_eq!(reader.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    destination.write(b"text").unwrap();
    let mut text = [0; 4];
    reader.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"text");
    drop(reader);
    let error = destination.write(b"text").unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{}: whoever read this pipe has gone; write to a file instead", link.display())
    );
    assert_eq!(count(folder.path()), 2, "nothing is left behind");
}
