//! Context options, zmq_ctx_set(3): one row each in `set` and `get`.

use crate::driver::ThreadOptions;
use crate::error::Error;
use crate::options::ContextDefaults;
use crate::version;

const IO_THREADS: i32 = 1;
const MAX_SOCKETS: i32 = 2;
/// Read as ZMQ_SOCKET_LIMIT, set as ZMQ_THREAD_PRIORITY.
const SOCKET_LIMIT_OR_THREAD_PRIORITY: i32 = 3;
const THREAD_SCHED_POLICY: i32 = 4;
const MAX_MSGSZ: i32 = 5;
const MSG_T_SIZE: i32 = 6;
const THREAD_AFFINITY_CPU_ADD: i32 = 7;
const THREAD_AFFINITY_CPU_REMOVE: i32 = 8;
const THREAD_NAME_PREFIX: i32 = 9;
const ZERO_COPY_RECV: i32 = 10;
const IPV6: i32 = 42;
const BLOCKY: i32 = 70;
/// Our own numbers, far from libzmq's.
const TAUTLINE_VERSION: i32 = 0x5441_0002;
pub(super) const TAUTLINE_OBSERVE: i32 = 0x5441_0004;
pub(super) const TAUTLINE_POLICY: i32 = 0x5441_0008;
pub(super) const TAUTLINE_NAMES: i32 = 0x5441_0009;

/// Value of ZMQ_SOCKET_LIMIT. As in libzmq, ZMQ_MAX_SOCKETS may be larger.
const SOCKET_LIMIT: i32 = 65_535;

/// The options of one context.
#[derive(Debug)]
pub(super) struct Settings {
    io_threads: i32,
    max_sockets: i32,
    priority: i32,
    policy: i32,
    max_msgsz: i32,
    affinity: Vec<usize>,
    name_prefix: Vec<u8>,
    zero_copy: bool,
    ipv6: bool,
    blocky: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            io_threads: 1,
            max_sockets: 1023,
            priority: -1,
            policy: -1,
            max_msgsz: i32::MAX,
            affinity: Vec::new(),
            name_prefix: Vec::new(),
            zero_copy: true,
            ipv6: false,
            blocky: true,
        }
    }
}

impl Settings {
    pub(super) fn set(&mut self, option: i32, value: i32) -> Result<(), Error> {
        let at_least = |least: i32| if value >= least { Ok(value) } else { Err(Error::Invalid) };
        let flag = || at_least(0).map(|value| value != 0);
        match option {
            IO_THREADS => self.io_threads = at_least(0)?,
            MAX_SOCKETS => self.max_sockets = at_least(1)?,
            SOCKET_LIMIT_OR_THREAD_PRIORITY => self.priority = at_least(0)?,
            THREAD_SCHED_POLICY => self.policy = at_least(0)?,
            MAX_MSGSZ => self.max_msgsz = at_least(0)?,
            THREAD_AFFINITY_CPU_ADD => self.affinity.push(at_least(0)? as usize),
            THREAD_AFFINITY_CPU_REMOVE => {
                let cpu = at_least(0)? as usize;
                let index = self.affinity.iter().position(|known| *known == cpu).ok_or(Error::Invalid)?;
                self.affinity.remove(index);
            }
            THREAD_NAME_PREFIX => self.name_prefix = value.to_string().into_bytes(),
            ZERO_COPY_RECV => self.zero_copy = flag()?,
            IPV6 => self.ipv6 = flag()?,
            BLOCKY => self.blocky = flag()?,
            _ => return Err(Error::Invalid),
        }
        Ok(())
    }

    pub(super) fn get(&self, option: i32) -> Result<i32, Error> {
        Ok(match option {
            IO_THREADS => self.io_threads,
            MAX_SOCKETS => self.max_sockets,
            SOCKET_LIMIT_OR_THREAD_PRIORITY => SOCKET_LIMIT,
            THREAD_SCHED_POLICY => self.policy,
            MAX_MSGSZ => self.max_msgsz,
            MSG_T_SIZE => 64,
            // A prefix that is not a number reads as 0, as C's atoi returns.
            THREAD_NAME_PREFIX => {
                std::str::from_utf8(&self.name_prefix).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
            }
            ZERO_COPY_RECV => self.zero_copy.into(),
            IPV6 => self.ipv6.into(),
            BLOCKY => self.blocky.into(),
            TAUTLINE_VERSION => version::NUMBER,
            _ => return Err(Error::Invalid),
        })
    }

    /// Sets options as bytes: a C int, or for the prefix of thread names also text.
    pub(super) fn set_bytes(&mut self, option: i32, value: &[u8]) -> Result<(), Error> {
        match (option, <[u8; 4]>::try_from(value)) {
            (_, Ok(number)) => self.set(option, i32::from_ne_bytes(number)),
            // As in libzmq the value need not end with a NUL. Its maximum is 16 bytes including the
            // NUL.
            (THREAD_NAME_PREFIX, _) if (1..=16).contains(&value.len()) => {
                let text = value.split(|byte| *byte == 0).next().unwrap_or_default();
                self.name_prefix = text.to_vec();
                Ok(())
            }
            _ => Err(Error::Invalid),
        }
    }

    /// Writes an option as bytes. Returns their number. If the buffer is larger than a number, the
    /// prefix of thread names and the version are written as text.
    pub(super) fn get_bytes(&self, option: i32, out: &mut [u8]) -> Result<usize, Error> {
        let text = match option {
            THREAD_NAME_PREFIX => Some(&self.name_prefix[..]),
            TAUTLINE_VERSION => Some(version::version().as_bytes()),
            _ => None,
        };
        if let Some(text) = text.filter(|_| out.len() != 4) {
            let target = out.get_mut(..=text.len()).ok_or(Error::Invalid)?;
            target[..text.len()].copy_from_slice(text);
            target[text.len()] = 0;
            return Ok(text.len() + 1);
        }
        let value = self.get(option)?.to_ne_bytes();
        out.get_mut(..4).ok_or(Error::Invalid)?.copy_from_slice(&value);
        Ok(4)
    }

    pub(super) fn io_threads(&self) -> usize {
        self.io_threads.max(0) as usize
    }

    pub(super) fn max_sockets(&self) -> usize {
        self.max_sockets.max(0) as usize
    }

    /// Defaults of new sockets.
    pub(super) fn defaults(&self) -> ContextDefaults {
        ContextDefaults { ipv6: self.ipv6, blocky: self.blocky }
    }

    /// Settings of the I/O thread of this index.
    pub(super) fn thread(&self, index: usize) -> ThreadOptions {
        let prefix = match &self.name_prefix[..] {
            b"" | b"0" => String::new(),
            text => format!("{}/", String::from_utf8_lossy(text)),
        };
        let scheduling = (self.policy >= 0 || self.priority >= 0).then_some((self.policy, self.priority));
        ThreadOptions {
            name: format!("{prefix}ZMQbg/IO/{index}"),
            scheduling,
            affinity: self.affinity.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_values_are_those_of_libzmq() {
        let set = |option, value| {
            let mut settings = Settings::default();
            settings.set(option, value).and_then(|()| settings.get(option))
        };
        for option in [ZERO_COPY_RECV, IPV6, BLOCKY] {
            for (value, read) in [(0, 0), (1, 1), (2, 1), (5, 1), (i32::MAX, 1)] {
                assert_eq!(set(option, value), Ok(read), "option {option}");
            }
            assert_eq!(set(option, -1), Err(Error::Invalid), "option {option}");
        }
        for value in [1, SOCKET_LIMIT, SOCKET_LIMIT + 1, i32::MAX] {
            assert_eq!(set(MAX_SOCKETS, value), Ok(value));
        }
        assert_eq!((set(MAX_SOCKETS, 0), set(MAX_SOCKETS, -1)), (Err(Error::Invalid), Err(Error::Invalid)));
        for value in [i32::MIN, -1, 0, 7] {
            assert_eq!(set(THREAD_NAME_PREFIX, value), Ok(value));
        }
    }
}
