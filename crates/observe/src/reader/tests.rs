use super::*;
use crate::{Image, PeerState};
use tautline_testkit::XorShift;

/// Returns a reading with a value in each relevant field, as a writer would store it.
fn sample() -> Reading {
    let process = Process { pid: 7, program: "program".into(), ..Process::default() };
    let socket = Socket { id: 3, linger_ms: -1, type_name: "PUB".into(), ..Socket::default() };
    let peer = Peer {
        socket: 3,
        state: PeerState::Connected,
        routing_id: vec![0, 255, 7],
        address: "tcp://10.0.0.7:51234".into(),
        ..Peer::default()
    };
    let route = Route { socket: 3, done: 5, known: 1, promise: "stored".into(), ..Route::default() };
    let event = Event { socket: 3, name: "connected".into(), ..Event::default() };
    Reading {
        process,
        contexts: vec![Context { id: 1, ..Context::default() }],
        sockets: vec![socket],
        endpoints: vec![Endpoint { given: "tcp://*:5555".into(), bound: true, ..Endpoint::default() }],
        peers: vec![peer; 3],
        events: vec![event],
        routes: vec![route],
        ..Reading::default()
    }
}

fn image(reading: &Reading) -> Image {
    let mut image = Image::new();
    reading.contexts.iter().for_each(|record| image.put(record));
    reading.sockets.iter().for_each(|record| image.put(record));
    reading.endpoints.iter().for_each(|record| image.put(record));
    reading.peers.iter().for_each(|record| image.put(record));
    reading.events.iter().for_each(|record| image.put(record));
    reading.routes.iter().for_each(|record| image.put(record));
    image.finish(&mut reading.process.clone());
    image
}

/// Returns a file whose newest image, with this sequence number, is `image`.
fn file(sequence: u64, image: &[u8]) -> Vec<u8> {
    let index = (sequence % 2) as usize;
    let mut file = vec![0; HEADER + index * ROOM];
    file[..8].copy_from_slice(&MAGIC);
    file[8..12].copy_from_slice(&VERSION.to_le_bytes());
    file[DESCRIPTIONS[index]..][..DESCRIPTION].copy_from_slice(&describe(sequence, image));
    file.extend(image);
    file
}

/// Parses `bytes` under a matching description, so that the test reaches the parser of records.
fn parse_image(bytes: &[u8]) -> Result<Reading, ReadError> {
    parse(&file(2, bytes))
}

#[test]
fn written_records_are_read_back() {
    let written = sample();
    assert_eq!(parse(&file(1, image(&written).bytes())).unwrap(), written);
    assert_eq!(parse(&file(2, image(&written).bytes())).unwrap(), written);
}

#[test]
fn the_newest_whole_image_counts() {
    let (mut old, new) = (sample(), sample());
    old.process.pid = 6;
    let mut both = file(2, image(&old).bytes());
    let later = file(3, image(&new).bytes());
    both.resize(later.len(), 0);
    both[HEADER + ROOM..].copy_from_slice(&later[HEADER + ROOM..]);
    let place = DESCRIPTIONS[1];
    both[place..place + DESCRIPTION].copy_from_slice(&later[place..place + DESCRIPTION]);
    assert_eq!(parse(&both).unwrap().process.pid, 7);
    // The writer is about to describe this image.
    both[place + 3] ^= 1;
    assert_eq!(parse(&both).unwrap().process.pid, 6);
}

#[test]
fn another_version_is_said_and_nothing_else_is_taken_for_one() {
    let mut bytes = file(2, image(&sample()).bytes());
    bytes[8] = 9;
    assert!(matches!(parse(&bytes), Err(ReadError::Version(9))));
    bytes[0] = b'X';
    assert!(matches!(parse(&bytes), Err(ReadError::Foreign)));
    assert!(matches!(parse(&[]), Err(ReadError::Incomplete)));
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused() {
    let whole = file(2, image(&sample()).bytes());
    for length in 0..whole.len() {
        assert!(parse(&whole[..length]).is_err(), "{length} bytes");
    }
    assert!(parse(&whole).is_ok());
}

#[test]
fn a_changed_byte_of_an_image_is_found() {
    let whole = file(2, image(&sample()).bytes());
    for at in HEADER..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        assert!(matches!(parse(&changed), Err(ReadError::Incomplete)), "byte {at}");
    }
}

#[test]
fn records_of_a_later_library_are_read_as_far_as_they_are_known() {
    let written = sample();
    let image = image(&written);
    let mut later = Vec::new();
    let mut left = image.bytes();
    while !left.is_empty() {
        // Add one number and one text to each record.
        let length = u32::from_le_bytes(left[..4].try_into().unwrap()) as usize;
        let numbers = usize::from(u16::from_le_bytes([left[6], left[7]]));
        let mut texts = 8 + 8 * numbers;
        for _ in 0..left[5] {
            texts += 2 + usize::from(u16::from_le_bytes([left[texts], left[texts + 1]]));
        }
        let mut record = left[..8 + 8 * numbers].to_vec();
        record.extend(77_u64.to_le_bytes());
        record.extend(&left[8 + 8 * numbers..texts]);
        record.extend([2, 0, b'o', b'k']);
        record.resize(record.len().next_multiple_of(8), 0);
        record[5] += 1;
        record[6..8].copy_from_slice(&(numbers as u16 + 1).to_le_bytes());
        let new_length = record.len() as u32;
        record[..4].copy_from_slice(&new_length.to_le_bytes());
        later.extend(record);
        left = &left[length..];
    }
    // Add a record of an unknown kind.
    later.extend([8, 0, 0, 0, 200, 0, 0, 0]);
    assert_eq!(parse_image(&later).unwrap(), written);
}

#[test]
fn records_of_an_earlier_library_lack_their_last_fields() {
    let mut earlier = vec![16, 0, 0, 0, Process::KIND, 0, 1, 0];
    earlier.extend(42_u64.to_le_bytes());
    let reading = parse_image(&earlier).unwrap();
    assert_eq!(reading.process, Process { pid: 42, ..Process::default() });
}

/// The reader neither crashes nor hangs for any bytes: random bytes, and a valid image with a few
/// bytes changed, under a matching checksum.
#[test]
fn random_bytes_are_read_or_refused() {
    let mut random = XorShift::new(30);
    let whole = image(&sample()).bytes().to_vec();
    let (mut read, mut refused) = (0, 0);
    for round in 0..20_000 {
        let bytes = if round % 2 == 0 {
            let length = random.next_u64() as usize % 300;
            (0..length).map(|_| random.next_u64() as u8).collect()
        } else {
            let mut bytes = whole.clone();
            for _ in 0..=random.next_u64() % 4 {
                let at = random.next_u64() as usize % bytes.len();
                bytes[at] = random.next_u64() as u8;
            }
            bytes.truncate(bytes.len() - random.next_u64() as usize % 9);
            bytes
        };
        let mut left = &bytes[..];
        while !left.is_empty() && Stored::take(&mut left).is_some() {}
        match records(&bytes) {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
}

#[test]
fn random_headers_are_refused_or_say_where_an_image_is() {
    let mut random = XorShift::new(31);
    let whole = file(2, image(&sample()).bytes());
    for _ in 0..20_000 {
        let mut header: [u8; HEADER] = whole[..HEADER].try_into().unwrap();
        for _ in 0..=random.next_u64() % 4 {
            let at = random.next_u64() as usize % 128;
            header[at] = random.next_u64() as u8;
        }
        if let Ok(found) = find(&header) {
            assert!(found.length <= ROOM && found.offset <= HEADER + ROOM);
        }
    }
}

#[test]
fn an_image_says_what_had_no_room() {
    let mut image = Image::new();
    let peer = Peer { address: "x".repeat(1024), ..Peer::default() };
    let mut process = Process::default();
    let put = ROOM / 1024 + 5;
    (0..put).for_each(|_| image.put(&peer));
    image.finish(&mut process);
    assert!(image.bytes().len() <= ROOM);
    let reading = records(image.bytes()).unwrap();
    assert!(process.omitted > 0);
    assert_eq!(reading.process, process);
    assert_eq!(reading.peers.len() as u64 + process.omitted, put as u64);
}

#[test]
fn a_text_that_is_too_long_is_cut() {
    let mut image = Image::new();
    image.put(&Endpoint { given: "x".repeat(70_000), name: "name".into(), ..Endpoint::default() });
    image.finish(&mut Process::default());
    let reading = records(image.bytes()).unwrap();
    assert_eq!((reading.endpoints[0].given.len(), &*reading.endpoints[0].name), (1024, "name"));
}
