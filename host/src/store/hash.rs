//! Salted hashes: what a home remembers of names and texts that it must not keep.

use std::fs;
use std::io::{self, Read as _, Write as _};

use sha2::{Digest as _, Sha256};

use super::home::{Home, fault};
use crate::error::{Error, Result};

const SALT_BYTES: usize = 32;
const SESSION_DOMAIN: &[u8] = b"mcpeval-session/1\0";
const DEFINITION_DOMAIN: &[u8] = b"mcpeval-verification-definition/2\0";
const FALSE_SUCCESS: &str = "mcpeval/annotated-success/false-success/v1";

const FINDING_PREFIX: &str = "finding-";

/// What every session token begins with.
pub const SESSION_PREFIX: &str = "session:";
/// The word in the place of a template id for requests that were never answered.
pub const UNANSWERED: &str = "unanswered";

/// The salt of one home.
#[derive(Clone)]
pub struct Salt([u8; SALT_BYTES]);

impl std::fmt::Debug for Salt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Salt(..)")
    }
}

impl Salt {
    /// A salt of these bytes.
    pub const fn new(bytes: [u8; SALT_BYTES]) -> Self {
        Self(bytes)
    }

    /// The salt of a home, made if there is none; the home must be prepared. Of two who make one at the same time, both
    /// use the same.
    ///
    /// # Errors
    /// Unfinished if it cannot be read or made, or is not 32 bytes long.
    pub fn of(home: &Home) -> Result<Self> {
        if let Some(salt) = Self::existing(home)? {
            return Ok(salt);
        }
        let path = home.salt_file();
        let failed = |error: io::Error| fault(&path, &error);
        let mut bytes = [0; SALT_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| Error::unfinished(format!("no random bytes: {error}")))?;
        let mut file = tempfile::Builder::new().prefix(".salt-").tempfile_in(home.root()).map_err(failed)?;
        file.write_all(&bytes).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
        match fs::hard_link(file.path(), &path) {
            Ok(()) => Ok(Self(bytes)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::existing(home)?
                .ok_or_else(|| Error::unfinished(format!("{}: it came and went; try again", path.display()))),
            Err(error) => Err(failed(error)),
        }
    }

    /// The salt of a home, if it has one.
    ///
    /// # Errors
    /// Unfinished if it cannot be read or is not 32 bytes long.
    pub fn existing(home: &Home) -> Result<Option<Self>> {
        let path = home.salt_file();
        let mut bytes = Vec::new();
        match fs::File::open(&path).and_then(|file| file.take(SALT_BYTES as u64 + 1).read_to_end(&mut bytes)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fault(&path, &error)),
            Ok(_) => {}
        }
        let bytes = bytes.try_into().map_err(|_| {
            Error::unfinished(format!(
                "{}: the salt must be {SALT_BYTES} bytes; restore it from a copy, or move the home folder away to begin anew",
                path.display()
            ))
        })?;
        Ok(Some(Self(bytes)))
    }

    fn digest(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut hash = Sha256::new_with_prefix(self.0);
        for part in parts {
            hash.update(part);
        }
        hash.finalize().into()
    }

    /// The token of a session's raw name.
    pub fn session(&self, raw: &str) -> String {
        format!("{SESSION_PREFIX}{}", hex(&self.digest(&[SESSION_DOMAIN, raw.as_bytes()])))
    }

    /// The id of an error text's skeleton.
    pub fn template(&self, skeleton: &str) -> String {
        hex(&self.digest(&[b"\0", skeleton.as_bytes()])[..8])
    }

    /// The id of what a verification ran, given as canonical JSON.
    pub fn definition(&self, canonical: &str) -> String {
        hex(&self.digest(&[DEFINITION_DOMAIN, &length(canonical.as_bytes()), canonical.as_bytes()]))
    }
}

/// The token that mcpeval 0.8 made of a session's raw name.
pub fn unsalted_session(raw: &str) -> String {
    format!("{SESSION_PREFIX}{}", hex(&Sha256::digest(raw.as_bytes())))
}

/// The id of the failures of one tool that share a template.
pub fn finding(server: &str, tool: &str, template_id: &str) -> String {
    finding_of(&[server, tool, "", template_id])
}

/// The id of the calls of one tool that somebody called false successes.
pub fn false_success(server: &str, tool: &str) -> String {
    finding_of(&[FALSE_SUCCESS, server, tool])
}

/// Whether a text has the form of a finding's id.
pub fn is_finding(id: &str) -> bool {
    id.strip_prefix(FINDING_PREFIX).is_some_and(|hex| {
        hex.len() == 16 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

fn finding_of(fields: &[&str]) -> String {
    let mut hash = Sha256::new();
    for field in fields {
        hash.update(length(field.as_bytes()));
        hash.update(field.as_bytes());
    }
    format!("{FINDING_PREFIX}{}", hex(&hash.finalize()[..8]))
}

fn length(bytes: &[u8]) -> [u8; 8] {
    (bytes.len() as u64).to_be_bytes()
}

/// Lower case.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_what_the_documents_say() {
        let salt = Salt::new([7; 32]);
        let by_hand = |parts: &[&[u8]]| hex(&Sha256::digest([&[7; 32][..], &parts.concat()].concat()));
        assert_eq!(salt.session("s"), format!("session:{}", by_hand(&[b"mcpeval-session/1\0", b"s"])));
        assert_eq!(salt.template("x"), by_hand(&[&[0], b"x"])[..16]);
        let two = 2_u64.to_be_bytes();
        assert_eq!(salt.definition("{}"), by_hand(&[b"mcpeval-verification-definition/2\0", &two, b"{}"]));
        assert_eq!(unsalted_session(""), "session:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        let fields = [&1_u64.to_be_bytes()[..], b"a", &1_u64.to_be_bytes(), b"b", &[0; 8], &2_u64.to_be_bytes(), b"ff"];
        assert_eq!(finding("a", "b", "ff"), format!("finding-{}", &hex(&Sha256::digest(fields.concat()))[..16]));
        assert_ne!(false_success("a", "b"), finding("a", "b", ""));
        assert!(is_finding(&finding("a", "b", "ff")) && !is_finding("finding-") && !is_finding("../0123456789abcdef"));
        assert!(!format!("{salt:?}").contains('7'));
    }

    #[test]
    fn a_home_has_one_salt_whoever_makes_it() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        assert!(Salt::existing(&home).unwrap().is_none() && !home.root().exists());
        home.prepare().unwrap();
        let salts: Vec<[u8; 32]> = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..8).map(|_| scope.spawn(|| Salt::of(&home).unwrap().0)).collect();
            makers.into_iter().map(|maker| maker.join().unwrap()).collect()
        });
        assert!(salts.iter().all(|salt| *salt == salts[0]) && salts[0] != [0; 32]);
        assert_eq!(fs::read_dir(home.root()).unwrap().flatten().filter(|file| file.path().is_file()).count(), 1);
        fs::write(home.salt_file(), "short").unwrap();
        assert!(Salt::of(&home).unwrap_err().to_string().contains("32 bytes"));
    }
}
