//! Taps: the request of a tool to a program, and the frames of the program to the tool.

use tautline_observe::tap::{Direction, Frame, MessageCopy, Part, Request};

/// The input is the text of a request, and a stream of frames.
pub fn run(input: &[u8]) {
    if let Ok(request) = Request::from_text(&String::from_utf8_lossy(input)) {
        let again = Request::from_text(request.to_text().trim_end());
        assert_eq!(again.as_ref(), Ok(&request), "encoding a request and decoding it gives the same request");
        for direction in [Direction::In, Direction::Out] {
            let accepts = request.accepts(direction, 1, input, input.len() as u64);
            assert_eq!(accepts, again.as_ref().unwrap().accepts(direction, 1, input, input.len() as u64));
        }
    }
    let mut stream = input;
    while let Ok(Some(frame)) = Frame::read(&mut stream) {
        assert_eq!(Frame::read(&mut &frame.to_bytes()[..]).unwrap(), Some(frame));
    }
}

/// Requests with every field, frames of both kinds, and a fault.
pub fn seeds() -> Vec<Vec<u8>> {
    let request = Request {
        socket: Some(7),
        peer: Some(3),
        direction: Some(Direction::In),
        prefix: b"EUR".to_vec(),
        least: 1,
        most: 1000,
        every: 10,
        bytes: 20,
    };
    let part = |bytes: &[u8]| Part { length: 700, bytes: bytes.to_vec() };
    let parts = vec![part(b"abc"), part(b"")];
    let copy = Frame::Copy(MessageCopy { at: 5, socket: 7, peer: 2, direction: Direction::Out, parts });
    vec![
        request.to_text().into_bytes(),
        Request { direction: Some(Direction::Out), ..Request::default() }.to_text().into_bytes(),
        [copy.to_bytes(), Frame::Missed { count: 9, too_large: 2 }.to_bytes()].concat(),
        b"TAP 1\nleast=x\n".to_vec(),
    ]
}
