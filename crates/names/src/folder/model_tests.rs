//! Random operations on a folder, beside a model of its entries. The folder also holds entries of
//! dead programs, unfinished entries, and files of other programs, which must stay.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use super::*;
use tautline_testkit::{XorShift, with_watchdog};

const NAMES: [&str; 3] = ["orders", "prices", "orders.eu"];
const HOSTS: [&str; 2] = ["there", "elsewhere"];
const ENDPOINTS: [&str; 4] = ["tcp://h:1", "tcp://h:2", "ws://h:3/", "tcp://[::1]:4"];
const IDS: [&str; 4] = ["0123456789ab", "ba9876543210", "cccccccccccc", "dddddddddddd"];
const MARKED: &str = "tautline-name 1\ntcp://h:9\n";

/// State of one name.
#[derive(Default)]
struct Model {
    /// Registrations of this program, each with its endpoints if it is published.
    own: Vec<(Registration, Option<Vec<String>>)>,
    /// Entries of other hosts, by id and host.
    mirrored: BTreeMap<(String, String), Vec<String>>,
    /// Files that the library must not change, with their contents. `None` for a link.
    foreign: BTreeMap<String, Option<String>>,
}

impl Model {
    /// Returns the expected answer for the name.
    fn entries(&self) -> Vec<NameEntry> {
        let own = self.own.iter().filter_map(|(registration, remote)| {
            let endpoints = [registration.ipc()].into_iter().chain(remote.clone()?).collect();
            Some(NameEntry { id: Some(registration.id().to_owned()), endpoints })
        });
        let mirrored = self.mirrored.values().cloned();
        let mut all: Vec<_> =
            own.chain(mirrored.map(|endpoints| NameEntry { id: None, endpoints })).collect();
        all.sort();
        all
    }

    /// Returns the names of all expected files.
    fn files(&self) -> BTreeSet<String> {
        let published = self.own.iter().filter(|(_, remote)| remote.is_some());
        let own = published.map(|(registration, _)| registration.id().to_owned());
        let mirrored = self.mirrored.keys().map(|(id, host)| format!("{id}@{host}"));
        own.chain(mirrored).chain(self.foreign.keys().cloned()).collect()
    }
}

struct Scratch(Folder);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0.path);
    }
}

fn endpoints(random: &mut XorShift, least: usize) -> Vec<String> {
    let count = least + random.below(3);
    (0..count).map(|_| ENDPOINTS[random.below(ENDPOINTS.len())].to_owned()).collect()
}

/// Writes a file that only this user can write to.
fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
}

/// Adds a file that is not an entry, unless its name is in use.
fn add_foreign(model: &mut Model, path: &Path, random: &mut XorShift) {
    let files = [
        ("thesis.txt", "my thesis"),
        ("alice.pub", MARKED),
        (".hidden", MARKED),
        (IDS[0], "not ours"),
        (IDS[1], "tautline-name 2\n"),
        ("0123456789AB", MARKED),
        ("0123456789ab@a.b", MARKED),
        ("dddddddddddd@there", "not ours"),
        (".new-0123456789ab", "not ours"),
        (".new-0123456789", MARKED),
    ];
    let (file, text) = files[random.below(files.len())];
    if model.files().contains(file) {
        return;
    }
    if random.one_in(4) {
        symlink("thesis.txt", path.join(file)).unwrap();
        model.foreign.insert(file.to_owned(), None);
    } else {
        write(&path.join(file), text);
        model.foreign.insert(file.to_owned(), Some(text.to_owned()));
    }
}

/// Does one random operation.
fn step(scratch: &Scratch, name: &str, model: &mut Model, random: &mut XorShift) {
    let folder = &scratch.0;
    let path = make_folder(folder, name).unwrap();
    match random.below(9) {
        0 => model.own.push((Registration::prepare(folder, name).unwrap(), None)),
        1 | 2 if !model.own.is_empty() => {
            let at = random.below(model.own.len());
            let remote = endpoints(random, 0);
            model.own[at].0.publish(&remote).unwrap();
            model.own[at].1 = Some(remote);
        }
        3 if !model.own.is_empty() => {
            let at = random.below(model.own.len());
            match random.one_in(2) {
                true => drop(model.own.remove(at)),
                false => {
                    model.own[at].0.withdraw();
                    model.own[at].1 = None;
                }
            }
        }
        4 | 5 => {
            let (id, host) = (IDS[random.below(IDS.len())], HOSTS[random.below(HOSTS.len())]);
            let remote = endpoints(random, 1);
            let written = mirror(folder, host, &LocalEntry::new(name, id, remote.clone()));
            if model.foreign.contains_key(&format!("{id}@{host}")) {
                assert_eq!(written.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
                return;
            }
            written.unwrap();
            model.mirrored.insert((id.to_owned(), host.to_owned()), remote);
        }
        6 => {
            let (id, host) = (IDS[random.below(IDS.len())], HOSTS[random.below(HOSTS.len())]);
            let removed = remove_mirrored(folder, host, &LocalEntry::new(name, id, Vec::new()));
            let known = model.mirrored.remove(&(id.to_owned(), host.to_owned()));
            assert_eq!(removed.is_ok(), known.is_some(), "{id}@{host}: {removed:?}");
        }
        7 => add_foreign(model, &path, random),
        // A program has died: its entry has no lock, and its socket's file is still there.
        _ => {
            let id = "eeeeeeeeeeee";
            write(&path.join(id), MARKED);
            let socket = path.join(format!("{id}{SOCKET}"));
            if random.one_in(2) && !socket.exists() {
                drop(UnixListener::bind(socket).unwrap());
            }
            if random.one_in(2) {
                write(&path.join(".new-eeeeeeeeeeee"), MARKED);
            }
        }
    }
}

fn check(scratch: &Scratch, models: &BTreeMap<&str, Model>, random: &mut XorShift) {
    let config = NamesConfig { folder: Some(scratch.0.clone()), ..NamesConfig::default() };
    // Each of these calls reads the folder, and removes what dead programs have left.
    match random.below(3) {
        0 => drop(known_names(&config).unwrap()),
        1 => drop(locals(&scratch.0).unwrap()),
        _ => {}
    }
    let (mut own, mut mirrored_count) = (0, 0);
    for (name, model) in models {
        let mut found = FolderResolver.resolve(&config, name).unwrap().entries;
        found.sort();
        assert_eq!(found, model.entries(), "{name}");
        let path = scratch.0.path.join(name);
        let files: BTreeSet<String> = match fs::read_dir(&path) {
            Ok(files) => files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect(),
            Err(_) => BTreeSet::new(),
        };
        assert_eq!(files, model.files(), "{name}");
        for (file, text) in &model.foreign {
            if let Some(text) = text {
                assert_eq!(&fs::read_to_string(path.join(file)).unwrap(), text, "{file}");
            }
        }
        own += model.own.iter().filter(|(_, remote)| remote.is_some()).count();
        mirrored_count += model.mirrored.len();
    }
    assert_eq!(locals(&scratch.0).unwrap().len(), own);
    assert_eq!(mirrored(&scratch.0).unwrap().len(), mirrored_count);
    let known: BTreeSet<String> = models
        .iter()
        .filter(|(_, model)| !model.entries().is_empty())
        .map(|(name, _)| (*name).to_owned())
        .collect();
    assert_eq!(known_names(&config).unwrap(), known);
}

#[test]
fn random_operations_agree_with_a_model() {
    with_watchdog(Duration::from_secs(240), "random_operations_agree_with_a_model", || {
        for seed in 0..8 {
            let path =
                std::env::temp_dir().join(format!("tautline-names-model-{seed}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            let scratch = Scratch(Folder { path, tcp: None, advertise: None });
            let mut random = XorShift::new(seed);
            let mut models: BTreeMap<&str, Model> = NAMES.map(|name| (name, Model::default())).into();
            for _ in 0..60 {
                let name = NAMES[random.below(NAMES.len())];
                step(&scratch, name, models.get_mut(name).unwrap(), &mut random);
                if random.one_in(2) {
                    check(&scratch, &models, &mut random);
                }
            }
            check(&scratch, &models, &mut random);
        }
    });
}
