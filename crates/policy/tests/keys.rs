//! Files with keys.

use std::fs;
use std::path::PathBuf;

use tautline_policy::keys::{owners, pair, publics};

const ONE: &str = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
const TWO: &str = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID";
const ODD: &str = "#q:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf=";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tautline-policy-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        Folder(folder)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_pair_is_what_keygen_writes() {
    let folder = Folder::new("pair");
    let text = format!("# A CURVE key pair.\npublic = \"{ONE}\"\nsecret = \"{TWO}\"\n");
    let found = pair(&folder.file("host.key", &text)).unwrap();
    assert_eq!((&*found.public, &**found.secret), (ONE, TWO));
    for text in [
        String::new(),
        format!("public = \"{ONE}\"\n"),
        format!("public = \"{ONE}\"\nsecret = \"short\"\n"),
        format!("public = \"{ONE}\"\npublic = \"{ONE}\"\nsecret = \"{TWO}\"\n"),
    ] {
        let error = pair(&folder.file("host.key", &text)).err().unwrap().to_string();
        assert!(error.contains("host.key has no key pair"), "{error}");
    }
    assert!(pair(&folder.0.join("none")).err().unwrap().to_string().contains("none: "));
}

#[test]
fn public_keys_are_lines_or_files() {
    let folder = Folder::new("publics");
    assert_eq!(publics(&folder.0).unwrap(), Vec::<String>::new());
    let file =
        folder.file("all", &format!("# clients\n\n{ONE}\n{ODD}\n  public = \"{TWO}\"\npublic=\"{TWO}\"\n"));
    assert_eq!(publics(&file).unwrap(), [ONE, ODD, TWO, TWO]);
    folder.file(".hidden", "nonsense");
    folder.file("two.key", &format!("public = \"{TWO}\"\nsecret = \"{ONE}\"\n"));
    let mut found = publics(&folder.0).unwrap();
    found.sort();
    assert_eq!(found.len(), 5, "a secret key admits nobody");
    let owned: Vec<_> = owners(&folder.0).unwrap().into_iter().map(|(_, owner)| owner).collect();
    assert_eq!(owned, ["all", "all", "all", "all", "two"]);
    folder.file("three", "nonsense\n");
    assert!(publics(&folder.0).unwrap_err().to_string().contains("three has a line that is no public key"));
    folder.file("three", &"#\n".repeat(1 << 20));
    assert!(publics(&folder.0).unwrap_err().to_string().contains("longer than 1 MiB"));
}
