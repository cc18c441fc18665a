use super::*;
use std::fs::TryLockError;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;
use tautline_testkit::with_watchdog;

const ID: &str = "0123456789ab";
const MARKED: &str = "tautline-name 1\ntcp://h:1\n";

struct Scratch(Folder);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("tautline-names-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Scratch(Folder { path, tcp: None, advertise: None })
    }

    /// Creates the folder of a name, with these files in it.
    fn with_files(test: &str, files: &[(&str, &str)]) -> (Scratch, PathBuf) {
        let scratch = Scratch::new(test);
        let folder = make_folder(&scratch.0, "orders").unwrap();
        for (file, text) in files {
            fs::write(folder.join(file), text).unwrap();
            set_mode(&folder.join(file), 0o644);
        }
        (scratch, folder)
    }

    fn answer(&self, name: &str) -> Result<Resolution, String> {
        let names = NamesConfig { folder: Some(self.0.clone()), ..NamesConfig::default() };
        FolderResolver.resolve(&names, name)
    }

    fn resolve(&self, name: &str) -> Vec<NameEntry> {
        self.answer(name).unwrap().entries
    }
}

fn files_of(folder: &Path) -> BTreeSet<String> {
    let files = fs::read_dir(folder).unwrap();
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn entry_of(id: &str, remote: &str) -> LocalEntry {
    LocalEntry::new("orders", id, vec![remote.to_owned()])
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0.path);
    }
}

#[test]
fn an_entry_is_there_as_long_as_its_registration() {
    let scratch = Scratch::new("registration");
    assert_eq!(scratch.resolve("orders"), []);
    let mut one = Registration::prepare(&scratch.0, "orders").unwrap();
    assert_eq!(scratch.resolve("orders"), []);
    one.publish(&["tcp://h:1".into()]).unwrap();
    let entry = NameEntry { id: Some(one.id().into()), endpoints: vec![one.ipc(), "tcp://h:1".into()] };
    assert_eq!(scratch.resolve("orders"), [entry]);
    assert_eq!(scratch.resolve("prices"), []);
    let mut two = Registration::prepare(&scratch.0, "orders").unwrap();
    two.publish(&[]).unwrap();
    assert_eq!(scratch.resolve("orders").len(), 2);
    assert_eq!(locals(&scratch.0).unwrap().len(), 2);
    drop((one, two));
    assert_eq!(scratch.resolve("orders"), []);
}

#[test]
fn the_entry_of_a_dead_program_is_removed_with_its_socket() {
    // No program holds a lock on the entry.
    let (scratch, folder) = Scratch::with_files("dead", &[(ID, MARKED), (".new-0123456789ab", MARKED)]);
    drop(UnixListener::bind(folder.join(format!("{ID}.ipc"))).unwrap());
    assert_eq!(scratch.resolve("orders"), []);
    assert_eq!(files_of(&folder), BTreeSet::new());
}

#[test]
fn files_that_are_no_entries_are_left_alone() {
    let files = [
        ("thesis.txt", "my thesis"),
        ("alice.pub", MARKED),
        ("README", MARKED),
        (".hidden", MARKED),
        (ID, "not ours"),
        ("0123456789AB", MARKED),
        ("0123456789abc", MARKED),
        ("ba9876543210@host", "not ours"),
        ("ba9876543210@a.b", MARKED),
        (".new-0123456789ab", "not ours"),
        // A file beside the entry of a dead program that is not a socket.
        ("aaaaaaaaaaaa", MARKED),
        ("aaaaaaaaaaaa.ipc", "not ours"),
    ];
    let (scratch, folder) = Scratch::with_files("foreign", &files);
    symlink(folder.join("alice.pub"), folder.join("bbbbbbbbbbbb")).unwrap();
    fs::create_dir(folder.join("cccccccccccc")).unwrap();
    let mut expected = files_of(&folder);
    expected.remove("aaaaaaaaaaaa");
    assert_eq!(scratch.resolve("orders"), []);
    assert_eq!(
        known_names(&NamesConfig { folder: Some(scratch.0.clone()), ..NamesConfig::default() })
            .unwrap()
            .len(),
        0
    );
    assert_eq!(files_of(&folder), expected);
}

#[test]
fn an_entry_is_kept_if_the_system_cannot_test_its_lock() {
    let no_locks = io::Error::from_raw_os_error(libc::ENOLCK);
    assert!(!entry::is_obtained(&Err(TryLockError::Error(no_locks))));
    assert!(!entry::is_obtained(&Err(TryLockError::WouldBlock)));
    assert!(entry::is_obtained(&Ok(())));
}

#[test]
fn a_pipe_in_the_folder_does_not_block() {
    with_watchdog(Duration::from_secs(60), "a_pipe_in_the_folder_does_not_block", || {
        let (scratch, folder) = Scratch::with_files("pipe", &[("0123456789ab@host", MARKED)]);
        for pipe in ["bbbbbbbbbbbb", "bbbbbbbbbbbb@host", ".new-bbbbbbbbbbbb"] {
            assert!(Command::new("mkfifo").arg(folder.join(pipe)).status().unwrap().success());
        }
        assert_eq!(scratch.resolve("orders").len(), 1);
        assert_eq!(files_of(&folder).len(), 4);
    });
}

#[test]
fn a_folder_that_others_can_write_to_is_refused() {
    let (scratch, folder) = Scratch::with_files("mode", &[("0123456789ab@host", MARKED)]);
    let refused = |path: &Path| {
        let why = scratch.answer("orders").unwrap_err();
        assert!(why.starts_with(&format!("{}: ", path.display())), "{why}");
        let denied = Registration::prepare(&scratch.0, "orders").unwrap_err();
        assert_eq!(denied.kind(), io::ErrorKind::PermissionDenied);
        assert!(mirror(&scratch.0, "host", &entry_of(ID, "tcp://h:1")).is_err());
    };
    for path in [&folder, &scratch.0.path] {
        for mode in [0o777, 0o720, 0o1702] {
            set_mode(path, mode);
            refused(path);
        }
        set_mode(path, 0o700);
        // Only root can change the owner.
        if chown(path, Some(65534), None).is_ok() {
            refused(path);
            chown(path, Some(0), None).unwrap();
        }
        set_mode(path, 0o755);
        assert_eq!(scratch.resolve("orders").len(), 1);
    }
    set_mode(&folder, 0o777);
    // The folders of other names still count.
    Registration::prepare(&scratch.0, "prices").unwrap().publish(&[]).unwrap();
    assert!(locals(&scratch.0).unwrap().is_empty());
    mirror(&scratch.0, "host", &LocalEntry::new("prices", ID, vec!["tcp://h:1".into()])).unwrap();
    assert_eq!(mirrored(&scratch.0).unwrap().len(), 1);
}

#[test]
fn an_entry_that_others_can_write_to_does_not_count() {
    let (scratch, folder) = Scratch::with_files("entry", &[("0123456789ab@host", MARKED)]);
    let file = folder.join("0123456789ab@host");
    set_mode(&file, 0o646);
    assert_eq!(scratch.resolve("orders"), []);
    set_mode(&file, 0o644);
    assert_eq!(scratch.resolve("orders").len(), 1);
}

#[test]
fn a_link_in_place_of_the_folder_is_not_followed() {
    let (scratch, folder) = Scratch::with_files("link", &[("0123456789ab@host", MARKED)]);
    symlink(&folder, scratch.0.path.join("prices")).unwrap();
    assert!(scratch.answer("prices").is_err());
    assert!(Registration::prepare(&scratch.0, "prices").is_err());
}

#[test]
fn the_folder_is_made_for_its_user_alone() {
    let scratch = Scratch::new("made");
    assert_eq!(host(&scratch.0, || "one".to_owned()).unwrap(), "one");
    assert_eq!(host(&scratch.0, || "two".to_owned()).unwrap(), "one");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&scratch.0.path), 0o700);
    let file = scratch.0.path.join(HOST);
    assert_eq!(mode(&file), 0o644);
    // The link is neither followed nor replaced.
    let other = scratch.0.path.join("other");
    fs::rename(&file, &other).unwrap();
    symlink(&other, &file).unwrap();
    assert!(host(&scratch.0, || "three".to_owned()).is_err());
    assert_eq!(fs::read_to_string(other).unwrap(), "one\n");
}

#[test]
fn entries_of_other_hosts_need_no_program() {
    let scratch = Scratch::new("mirror");
    let entry = entry_of(ID, "tcp://h:1");
    mirror(&scratch.0, "there", &entry).unwrap();
    let known = NameEntry { id: None, endpoints: vec!["tcp://h:1".into()] };
    assert_eq!(scratch.resolve("orders"), [known]);
    assert_eq!(mirrored(&scratch.0).unwrap(), [("there".to_owned(), entry.clone())]);
    assert_eq!(locals(&scratch.0).unwrap(), []);
    // The new entry replaces the old one.
    mirror(&scratch.0, "there", &entry_of(ID, "tcp://h:2")).unwrap();
    assert_eq!(mirrored(&scratch.0).unwrap()[0].1.remote, ["tcp://h:2"]);
    remove_mirrored(&scratch.0, "there", &entry).unwrap();
    assert_eq!(scratch.resolve("orders"), []);
    for (name, host, id) in [
        ("..", "h", ID),
        ("n", "../h", ID),
        ("n", "h.h", ID),
        ("n", "h", "a/b"),
        ("n", "h", "abc"),
        ("n", "h", ""),
    ] {
        let bad = LocalEntry { name: name.into(), id: id.into(), remote: vec!["tcp://h:1".into()] };
        assert!(mirror(&scratch.0, host, &bad).is_err(), "{name} {host} {id}");
    }
}

#[test]
fn entries_are_not_written_through_links_or_over_other_files() {
    let (scratch, folder) =
        Scratch::with_files("write", &[("victim", "mine"), ("bbbbbbbbbbbb@there", "mine")]);
    let victim = folder.join("victim");
    symlink(&victim, folder.join(format!("{ID}@there"))).unwrap();
    symlink(&victim, folder.join(format!(".{ID}@there"))).unwrap();
    for id in [ID, "bbbbbbbbbbbb"] {
        let entry = entry_of(id, "tcp://10.9.9.9:1");
        let refused = mirror(&scratch.0, "there", &entry).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert!(remove_mirrored(&scratch.0, "there", &entry).is_err());
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    assert_eq!(fs::read_to_string(folder.join("bbbbbbbbbbbb@there")).unwrap(), "mine");
    assert_eq!(files_of(&folder).len(), 4);
}

#[test]
fn endpoints_that_another_host_cannot_have_are_left_out() {
    let refused = [
        "inproc://admin",
        "ipc:///tmp/x",
        "udp://h:1",
        "tcp://10.0.0.9:1;8.8.8.8:1",
        "h:1",
        "tcp://\u{1b}:1",
    ];
    let text = format!("tautline-name 1\n{}\ntcp://h:1\n", refused.join("\n"));
    let (scratch, _folder) = Scratch::with_files("endpoints", &[("0123456789ab@host", &text)]);
    let answer = scratch.answer("orders").unwrap();
    assert_eq!(answer.entries, [NameEntry { id: None, endpoints: vec!["tcp://h:1".into()] }]);
    assert_eq!(answer.refused, refused);
    for endpoint in refused {
        let entry = LocalEntry::new("orders", ID, vec!["tcp://h:1".into(), endpoint.into()]);
        assert!(mirror(&scratch.0, "there", &entry).is_err(), "{endpoint}");
    }
    assert!(mirror(&scratch.0, "there", &LocalEntry::new("orders", ID, Vec::new())).is_err());
    let long = vec![format!("tcp://{}:1", "x".repeat(250)); 20];
    assert!(mirror(&scratch.0, "there", &LocalEntry::new("orders", ID, long)).is_err());
}
