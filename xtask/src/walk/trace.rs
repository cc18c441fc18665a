//! Reads the trace of Valgrind's tool lackey, and rebuilds the call stack of each instruction of the library.
//!
//! The trace has a line for each instruction (`I  04001234,3`), followed by its accesses to memory (` L`, ` S`, ` M`). It does not
//! name the thread, and does not mark calls. An access to a stack shows the thread, and the bytes of an instruction show if it is a
//! call or a return.

use std::io::{self, BufRead};

/// Room for the stack of the main thread below an address in `main`.
const MAIN_STACK: u64 = 8 << 20;
/// Distance between two addresses that belong to the stack of one thread.
const NEAR: u64 = 256 << 10;

/// Effect of an instruction on the call stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Call,
    Return,
    Other,
}

/// The code of a library: the parts of its file that are mapped.
pub struct Code {
    bytes: Vec<u8>,
    /// Address without the base, offset in the file, length.
    parts: Vec<(u64, usize, u64)>,
}

impl Code {
    /// Reads the program headers of a 64-bit ELF file.
    pub fn new(bytes: Vec<u8>) -> Option<Code> {
        let number = |at: usize, length: usize| -> Option<u64> {
            let part = bytes.get(at..at + length)?;
            Some(part.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
        };
        if bytes.get(..5)? != b"\x7fELF\x02" {
            return None;
        }
        let (table, size, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
        let mut parts = Vec::new();
        for header in (0..count).map(|i| (table + i * size) as usize) {
            const LOAD: u64 = 1;
            if number(header, 4)? == LOAD {
                parts.push((
                    number(header + 16, 8)?,
                    number(header + 8, 8)? as usize,
                    number(header + 32, 8)?,
                ));
            }
        }
        Some(Code { bytes, parts })
    }

    /// Address behind the last byte of the library, without the base.
    fn end(&self) -> u64 {
        self.parts.iter().map(|(address, _, length)| address + length).max().unwrap_or(0)
    }

    /// Returns the kind of the x86-64 instruction at an address.
    fn kind(&self, at: u64, length: u64) -> Kind {
        let part = self.parts.iter().find(|(address, _, size)| (*address..address + size).contains(&at));
        let Some((address, offset, _)) = part else { return Kind::Other };
        let start = offset + (at - address) as usize;
        kind(self.bytes.get(start..start + length as usize).unwrap_or_default())
    }
}

/// Returns the kind of an x86-64 instruction.
fn kind(instruction: &[u8]) -> Kind {
    let is_prefix = |byte: &&u8| matches!(byte, 0xf2 | 0xf3 | 0x66 | 0x67 | 0x40..=0x4f);
    let mut rest = instruction.iter().skip_while(is_prefix);
    match (rest.next(), rest.next()) {
        (Some(0xe8), _) => Kind::Call,
        (Some(0xff), Some(operand)) if operand >> 3 & 7 == 2 => Kind::Call,
        (Some(0xc2 | 0xc3), _) => Kind::Return,
        _ => Kind::Other,
    }
}

/// An activation of a function, made by a call.
pub struct Activation {
    /// The activation that made the call. `None` for the first activation of a thread.
    pub caller: Option<usize>,
    /// Address of the call.
    pub site: u64,
    /// Address to which it returns.
    pub back: u64,
}

/// Reason to look at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It was executed.
    Executed,
    /// It, or a function of another library that it has called, accesses the caller's message.
    Message,
    /// It makes a system call: the number of the call in `bench/budget/walk.c`.
    System(usize),
}

/// An instruction of the library in a walk.
pub struct Step {
    /// The activation that executed it.
    pub activation: usize,
    /// Its address in the library.
    pub address: u64,
    pub mark: Mark,
}

/// The steps between one pair of `walk_begin` and `walk_end`.
#[derive(Default)]
pub struct Walk {
    /// Steps of the call. Those of other threads follow, if the walk has any.
    pub steps: Vec<Step>,
    others: Vec<Step>,
    /// The other threads have sent the first byte to the peer.
    sent: bool,
}

#[derive(Default)]
struct Thread {
    activation: Option<usize>,
    /// Kind of the last instruction, if it was one of the library.
    last_kind: Option<Kind>,
}

/// Reads a trace.
pub struct Reader {
    code: Code,
    library: u64,
    begin: u64,
    end: u64,
    stack: u64,
    buffer: u64,
    systems: Vec<u64>,
    /// An address in the stack of each thread but the main one.
    stacks: Vec<u64>,
    threads: Vec<Thread>,
    current: usize,
    pub activations: Vec<Activation>,
    pub walks: Vec<Walk>,
    walking: bool,
    /// The call of the walk has returned, and only other threads walk.
    beyond: bool,
    /// Other threads go on with a walk when its call has returned.
    goes_on: bool,
    /// Lines that are neither of the trace nor of the program's addresses.
    pub rest: Vec<String>,
}

/// Bytes of a message in `bench/budget/walk.c`.
const MESSAGE: u64 = 64;
/// Number of the first system calls in `bench/budget/walk.c`, which send to a peer.
const SENDING_CALLS: usize = 3;

impl Reader {
    /// `goes_on`: other threads go on with a walk when its call has returned, until they send.
    pub fn new(code: Code, goes_on: bool) -> Reader {
        Reader {
            code,
            library: 0,
            begin: 0,
            end: 0,
            stack: 0,
            buffer: 0,
            systems: Vec::new(),
            stacks: Vec::new(),
            threads: vec![Thread::default()],
            current: 0,
            activations: Vec::new(),
            walks: Vec::new(),
            walking: false,
            beyond: false,
            goes_on,
            rest: Vec::new(),
        }
    }

    /// Reads all lines.
    pub fn read(&mut self, mut from: impl BufRead) -> io::Result<()> {
        let (mut line, mut instruction, mut accesses) = (Vec::new(), None, Vec::new());
        loop {
            line.clear();
            let over = from.read_until(b'\n', &mut line)? == 0;
            let text = std::str::from_utf8(&line).unwrap_or_default().trim_end();
            let (tag, place) = text.split_at_checked(3).unwrap_or((text, ""));
            match tag {
                "I  " => {
                    if let Some((at, length)) = instruction.take() {
                        self.execute(at, length, &accesses);
                    }
                    accesses.clear();
                    instruction = numbers(place);
                }
                " L " | " S " | " M " => accesses.extend(numbers(place).map(|(at, _)| at)),
                _ if text.is_empty() || text.starts_with("==") || text.starts_with("--") => {}
                _ => self.take_line(text),
            }
            if over {
                if let Some((at, length)) = instruction {
                    self.execute(at, length, &accesses);
                }
                self.finish();
                return Ok(());
            }
        }
    }

    /// Adds the steps of the other threads to the last walk.
    fn finish(&mut self) {
        if let Some(walk) = self.walks.last_mut() {
            walk.steps.append(&mut walk.others);
        }
    }

    /// Takes an address that the program has printed.
    fn take_line(&mut self, text: &str) {
        let mut words = text.split(' ');
        let (name, address) = match (words.next(), words.next(), words.next()) {
            (Some("walk:"), Some(name), Some(address)) => (name, u64::from_str_radix(address, 16)),
            _ => ("", Ok(0)),
        };
        match (name, address) {
            ("library", Ok(address)) => self.library = address,
            ("begin", Ok(address)) => self.begin = address,
            ("end", Ok(address)) => self.end = address,
            ("stack", Ok(address)) => self.stack = address,
            ("buffer", Ok(address)) => self.buffer = address,
            ("syscall", Ok(address)) => self.systems.push(address),
            _ => self.rest.push(text.to_owned()),
        }
    }

    fn execute(&mut self, at: u64, length: u64, accesses: &[u64]) {
        if self.library == 0 {
            return;
        }
        let inside = at >= self.library && at - self.library < self.code.end();
        let address = at.wrapping_sub(self.library);
        let kind = if inside { self.code.kind(address, length) } else { Kind::Other };
        self.find_thread(kind, accesses);
        if at == self.begin {
            (self.walking, self.beyond) = (true, false);
            self.finish();
            self.walks.push(Walk::default());
            self.threads[0] = Thread::default();
        } else if at == self.end {
            (self.walking, self.beyond) = (self.goes_on, self.goes_on);
            self.threads[0] = Thread::default();
        }
        let thread = &mut self.threads[self.current];
        if inside {
            enter(thread, &self.activations, address);
            if thread.activation.is_none() {
                self.activations.push(Activation { caller: None, site: 0, back: 0 });
                thread.activation = Some(self.activations.len() - 1);
            }
        }
        let mark = if accesses.iter().any(|at| at.wrapping_sub(self.buffer) < MESSAGE) {
            Some(Mark::Message)
        } else if let Some(number) = self.systems.iter().position(|system| *system == at) {
            Some(Mark::System(number))
        } else {
            inside.then_some(Mark::Executed)
        };
        let is_caller = self.current == 0;
        let counts = if is_caller { !self.beyond } else { self.goes_on };
        if let (Some(mark), true, Some(activation)) = (mark, self.walking && counts, thread.activation) {
            let call = &self.activations[activation];
            // A function of another library counts at the place of its call.
            let place = match call.caller {
                _ if inside => Some((activation, address)),
                caller => caller.map(|caller| (caller, call.site)),
            };
            if let (Some(walk), Some((activation, address))) = (self.walks.last_mut(), place) {
                let steps = if is_caller { &mut walk.steps } else { &mut walk.others };
                if is_caller || !walk.sent {
                    steps.push(Step { activation, address, mark });
                }
                // The first byte to the peer ends the part of the other threads.
                walk.sent |= !is_caller && matches!(mark, Mark::System(0..SENDING_CALLS));
            }
        }
        if !inside {
            thread.last_kind = None;
            return;
        }
        thread.last_kind = Some(kind);
        if kind == Kind::Call {
            self.activations.push(Activation {
                caller: thread.activation,
                site: address,
                back: address + length,
            });
            thread.activation = Some(self.activations.len() - 1);
        }
    }

    /// Finds the thread by its stack.
    fn find_thread(&mut self, kind: Kind, accesses: &[u64]) {
        let main = self.stack.saturating_sub(MAIN_STACK)..self.stack + (1 << 20);
        for at in accesses {
            if main.contains(at) {
                self.current = 0;
                return;
            }
            if let Some(known) = self.stacks.iter().position(|stack| stack.abs_diff(*at) < NEAR) {
                self.current = known + 1;
                return;
            }
        }
        // A call stores its return address in the stack. It may read its target from elsewhere before.
        if let (Kind::Call, Some(at)) = (kind, accesses.last()) {
            self.stacks.push(*at);
            self.threads.push(Thread::default());
            self.current = self.stacks.len();
        }
    }
}

/// Finds the activation that executes the instruction at an address.
fn enter(thread: &mut Thread, activations: &[Activation], address: u64) {
    match thread.last_kind {
        // The call has made its activation, and other instructions stay in theirs.
        Some(Kind::Call | Kind::Other) => return,
        Some(Kind::Return) | None => {}
    }
    // A return, or an instruction after those of another library.
    let mut looked_at = thread.activation;
    while let Some(activation) = looked_at.map(|at| &activations[at]) {
        if activation.back == address {
            thread.activation = activation.caller;
            return;
        }
        looked_at = activation.caller;
    }
    // Another library calls this one. The activation stays that of the call of the other library.
}

/// Reads `04001234,3`.
fn numbers(place: &str) -> Option<(u64, u64)> {
    let (at, length) = place.trim().split_once(',')?;
    Some((u64::from_str_radix(at, 16).ok()?, length.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library of one page: a call at 0, a return at 0x10, other instructions elsewhere.
    fn code() -> Code {
        let mut bytes = vec![0x90; 0x40];
        bytes[0] = 0xe8;
        bytes[0x10] = 0xc3;
        Code { bytes, parts: vec![(0, 0, 0x40)] }
    }

    fn read(trace: &str) -> Reader {
        let head = "walk: library 10000\nwalk: begin 1\nwalk: end 2\nwalk: stack 7f0000000\nwalk: buffer 5000\nwalk: syscall 9000\n";
        let mut reader = Reader::new(code(), false);
        reader.read(format!("{head}{trace}").as_bytes()).unwrap();
        reader
    }

    #[test]
    fn kinds_of_instructions() {
        assert_eq!(kind(&[0xe8, 0, 0, 0, 0]), Kind::Call);
        assert_eq!(kind(&[0x41, 0xff, 0xd4]), Kind::Call);
        assert_eq!(kind(&[0xff, 0x15, 0, 0, 0, 0]), Kind::Call);
        assert_eq!(kind(&[0xff, 0x25, 0, 0, 0, 0]), Kind::Other);
        assert_eq!(kind(&[0xf3, 0xc3]), Kind::Return);
        assert_eq!(kind(&[0x0f, 0xe8]), Kind::Other);
    }

    #[test]
    fn a_call_makes_an_activation_and_a_return_ends_it() {
        let reader = read(
            "I  1,1\nI  00010000,5\n S 7f0000000,8\nI  00010010,1\n L 7f0000000,8\nI  00010005,1\nI  2,1\nI  00010005,1\n",
        );
        let steps: Vec<(usize, u64)> =
            reader.walks[0].steps.iter().map(|step| (step.activation, step.address)).collect();
        assert_eq!(steps, [(0, 0), (1, 0x10), (0, 5)]);
        assert_eq!((reader.activations[1].caller, reader.activations[1].site), (Some(0), 0));
    }

    #[test]
    fn a_function_of_another_library_counts_as_its_call() {
        let reader = read(
            "I  1,1\nI  00010000,5\n S 7f0000000,8\nI  00009000,1\nI  00009005,1\n L 00005010,8\nI  00010005,1\nI  2,1\n",
        );
        let marks: Vec<(usize, u64, Mark)> =
            reader.walks[0].steps.iter().map(|step| (step.activation, step.address, step.mark)).collect();
        let expected =
            [(0, 0, Mark::Executed), (0, 0, Mark::System(0)), (0, 0, Mark::Message), (0, 5, Mark::Executed)];
        assert_eq!(marks, expected);
    }

    #[test]
    fn other_threads_are_told_apart_by_their_stacks() {
        let reader = read(
            "I  1,1\nI  00010005,1\n S 7f0000000,8\nI  00010000,5\n S 300000000,8\nI  00010010,1\nI  00010005,1\n L 7f0000000,8\nI  2,1\n",
        );
        let addresses: Vec<u64> = reader.walks[0].steps.iter().map(|step| step.address).collect();
        assert_eq!(addresses, [5, 5]);
    }
}
