//! Files with keys.

use std::fs;
use std::path::PathBuf;

use tautline_policy::keys::{read_clients, read_pair, read_public_keys};

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
    let found = read_pair(&folder.file("host.key", &text)).unwrap();
    assert_eq!((&*found.public, &**found.secret), (ONE, TWO));
    for text in [
        String::new(),
        format!("public = \"{ONE}\"\n"),
        format!("public = \"{ONE}\"\nsecret = \"short\"\n"),
        format!("public = \"{ONE}\"\npublic = \"{ONE}\"\nsecret = \"{TWO}\"\n"),
    ] {
        let error = read_pair(&folder.file("host.key", &text)).err().unwrap().to_string();
        assert!(error.contains("host.key has no key pair"), "{error}");
    }
    assert!(read_pair(&folder.0.join("none")).err().unwrap().to_string().contains("none: "));
}

#[test]
fn public_keys_are_lines() {
    let folder = Folder::new("publics");
    let file =
        folder.file("all", &format!("# clients\n\n{ONE}\n{ODD}\n  public = \"{TWO}\"\npublic=\"{TWO}\"\n"));
    assert_eq!(read_public_keys(&file).unwrap(), [ONE, ODD, TWO, TWO]);
    let found = read_clients(&file).unwrap();
    assert_eq!(found.keys[0], (ONE.to_owned(), "all".to_owned()));
    assert_eq!((found.keys.len(), found.faults.len()), (4, 0));
    let pair = folder.file("two", &format!("public = \"{TWO}\"\nsecret = \"{ONE}\"\n"));
    assert_eq!(read_public_keys(&pair).unwrap(), [TWO], "a secret key admits nobody");
    let bad = folder.file("three", "nonsense\n");
    assert!(
        read_public_keys(&bad).unwrap_err().to_string().contains("three has a line that is not a public key")
    );
    let long = folder.file("three", &"#\n".repeat(1 << 20));
    assert!(read_public_keys(&long).unwrap_err().to_string().contains("longer than 1 MiB"));
}

#[test]
fn each_line_and_file_of_clients_counts_by_itself() {
    let folder = Folder::new("clients");
    assert_eq!(read_clients(&folder.0).unwrap(), Default::default());
    folder.file("b.pub", &format!("{ONE}\nhalf a key\n"));
    folder.file("a.pub", &format!("public = \"{TWO}\"\n"));
    folder.file("c.pub", "oops");
    fs::write(folder.0.join("d.pub"), [0xFF; 50]).unwrap();
    folder.file("e.pub", &"#\n".repeat(1 << 20));
    let found = read_clients(&folder.0).unwrap();
    assert_eq!(found.keys, [(TWO.to_owned(), "a".to_owned()), (ONE.to_owned(), "b".to_owned())]);
    let about = |fault: &String| ["b.pub", "c.pub", "d.pub", "e.pub"].map(|name| fault.contains(name));
    let faults: Vec<_> = found.faults.iter().map(about).collect();
    assert_eq!(faults, [0, 1, 2, 3].map(|file| [0, 1, 2, 3].map(|name| name == file)));
    assert!(!found.is_partial);
    // A list in one file is read in the same way.
    let one = read_clients(&folder.0.join("b.pub")).unwrap();
    assert_eq!((one.keys.len(), one.faults.len()), (1, 1));
    assert_eq!(read_clients(&folder.0.join("none")).unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn only_files_called_name_pub_have_clients() {
    let folder = Folder::new("names");
    for name in [
        "a.pub",
        ".hidden.pub",
        "a.pub~",
        "#a.pub#",
        "a.pub.bak",
        "a.pub.dpkg-old",
        "a.pub.revoked",
        "a",
        "a.key",
        "README",
    ] {
        folder.file(name, ONE);
    }
    fs::create_dir(folder.0.join("folder.pub")).unwrap();
    let found = read_clients(&folder.0).unwrap();
    assert_eq!(found.keys, [(ONE.to_owned(), "a".to_owned())]);
    assert_eq!((found.ignored.len(), found.faults.len()), (8, 0));
}
