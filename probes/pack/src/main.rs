//! Builds the battery into `probes/dist`, or with `--check` compares what is committed with a fresh build.

use std::process::ExitCode;

use pack::{COMPONENTS, Lock, Result, Std, build, dist, inputs, root};

fn main() -> ExitCode {
    let done = match std::env::args().nth(1).as_deref() {
        None => rebuild(),
        Some("--check") => check(),
        Some(_) => Err("usage: probes/rebuild [--check]".to_owned()),
    };
    match done {
        Ok(words) => {
            say(&words);
            ExitCode::SUCCESS
        }
        Err(words) => {
            say(&words);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "what a build tool says to people")]
fn say(words: &str) {
    eprintln!("{words}");
}

fn rebuild() -> Result<String> {
    let root = root();
    let dist = dist(&root);
    std::fs::create_dir_all(&dist).map_err(|error| format!("{}: {error}", dist.display()))?;
    let lock = build(&root, &Std::find()?, &dist)?;
    lock.write(&dist)?;
    Ok(format!("{} components in {}", lock.component.len(), dist.display()))
}

fn check() -> Result<String> {
    let root = root();
    let committed = Lock::read(&dist(&root))?;
    for name in COMPONENTS {
        let locked = committed.component.iter().find(|component| component.name == name);
        if locked.is_none_or(|locked| inputs(&root, name).ok().as_ref() != Some(&locked.inputs)) {
            return Err(format!("{name} was built from other sources; run probes/rebuild and commit probes/dist"));
        }
    }
    let std = Std::find()?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let fresh = build(&root, &std, folder.path())?;
    if fresh.std != committed.std || fresh.rustc != committed.rustc {
        return Ok("inputs agree; bytes were built against another standard library and are not compared".to_owned());
    }
    if fresh == committed {
        return Ok("inputs and bytes agree".to_owned());
    }
    Err("the bytes differ from a fresh build of the same inputs; run probes/rebuild and commit probes/dist".to_owned())
}
