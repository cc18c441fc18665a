//! zmq_setsockopt(3) and zmq_getsockopt(3): options that only the socket itself can answer. All
//! other options are in `options`.

use super::statistics::NUMBERS;
use super::{PollEvents, Socket};
use crate::error::{Error, check_memory, check_shortage};
pub(super) use crate::options::socket_codes::{EVENTS, FD, SUBSCRIBE, UNSUBSCRIBE};
use crate::options::socket_codes::{
    LAST_ENDPOINT, PEERS, RCVMORE, STATISTICS, THREAD_SAFE, TOPICS_COUNT, TYPE, WAIT_PEERS,
    WAIT_SUBSCRIPTIONS,
};
use crate::transport;
use tautline_io::fd;

pub(super) const LINGER: i32 = 17;
pub(super) const SNDHWM: i32 = 23;
pub(super) const RCVHWM: i32 = 24;
const RCVTIMEO: i32 = 27;
const SNDTIMEO: i32 = 28;
/// Code of the first statistics option. There is one option for each number in the statistics.
const STATISTIC: i32 = 0x5441_1000;
/// Code of the first option for the bits above the lower 31 bits of a number.
const STATISTIC_HIGH: i32 = 0x5441_2000;
const STATISTIC_LAST: i32 = STATISTIC + NUMBERS as i32 - 1;
const STATISTIC_HIGH_LAST: i32 = STATISTIC_HIGH + NUMBERS as i32 - 1;

/// Longer values are allocated fallibly.
const LONG: usize = 4096;

pub(super) const POLLIN: i32 = 1;
const POLLOUT: i32 = 2;

impl Socket {
    /// Sets an option from its bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an option that does not exist, is not for this socket type, or for a
    /// value of the wrong size or range; [`Error::NoMemory`] if there is no memory for a long
    /// value; [`Error::Terminated`].
    pub fn set_option(&mut self, code: i32, value: &[u8]) -> Result<(), Error> {
        self.check_settable(code)?;
        match code {
            SUBSCRIBE | UNSUBSCRIBE => {
                let result = self.pattern.pattern_mut().subscribe(&mut self.pipes, value, code == SUBSCRIBE);
                self.show_options();
                self.remove_closed_pipes();
                return result;
            }
            WAIT_PEERS | WAIT_SUBSCRIPTIONS => {
                return self.wait_by_option(code == WAIT_SUBSCRIPTIONS, value);
            }
            _ => {
                if value.len() > LONG {
                    check_memory(2 * value.len())?;
                }
                self.pipes.options_mut().set(code, value)?;
            }
        }
        self.apply_option(code);
        Ok(())
    }

    /// Sets an option to a NULL value, which resets options that can be "not set".
    ///
    /// # Errors
    /// [`Error::Invalid`] for an option that does not exist, is not for this socket type, or cannot
    /// be reset; [`Error::Terminated`].
    pub fn set_option_null(&mut self, code: i32) -> Result<(), Error> {
        self.check_settable(code)?;
        if matches!(code, SUBSCRIBE | UNSUBSCRIBE) {
            return self.set_option(code, &[]);
        }
        self.pipes.options_mut().set_null(code)?;
        self.apply_option(code);
        Ok(())
    }

    /// Does not process news, and lets ZMQ_LINGER be set even after termination, while another
    /// thread closes the socket, or while memory is short: a program that shuts down must be able
    /// to drop its queued messages. While memory is short, time limits of waits can also be set.
    fn check_settable(&self, code: i32) -> Result<(), Error> {
        match self.over {
            Some(_) if code == LINGER => Ok(()),
            Some(error) => Err(error),
            None if matches!(code, LINGER | RCVTIMEO | SNDTIMEO | UNSUBSCRIBE) => Ok(()),
            None => Ok(check_shortage()?),
        }
    }

    fn apply_option(&mut self, code: i32) {
        transport::forbid_loans_of_encrypted(&self.pipes.options);
        if matches!(code, SNDHWM | RCVHWM) {
            self.pipes.apply_limits();
        }
        if let Some(site) = &self.site {
            site.set_announces_peers(self.pipes.options.reports_every_peer());
        }
        self.pattern.pattern_mut().option_changed(&mut self.pipes, code);
        self.show_options();
    }

    /// Reads an option into `out`. Returns its number of bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an option that does not exist or cannot be read, or a buffer that is
    /// too small; [`Error::Terminated`]; [`Error::TooManyFiles`] for ZMQ_FD without descriptors.
    pub fn option(&mut self, code: i32, out: &mut [u8]) -> Result<usize, Error> {
        if self.over.is_some() || (self.inbox.has_pending() && matches!(code, EVENTS | TOPICS_COUNT)) {
            self.check_alive()?;
        }
        let number = match code {
            RCVMORE => self.receive_more.into(),
            EVENTS => self.events()?,
            TYPE if out.len() == 4 => self.socket_type.code().into(),
            TYPE => return Err(Error::Invalid),
            THREAD_SAFE => self.is_thread_safe().into(),
            // One descriptor cannot serve several threads.
            FD if self.is_thread_safe() => return Err(Error::Invalid),
            FD => {
                self.expose()?;
                let number = self.inbox.waker().number()?;
                // On Windows the descriptor has eight bytes.
                if let (8, Some(place)) = (size_of_val(&number), out.first_chunk_mut()) {
                    *place = fd::to_u64(number).to_ne_bytes();
                    return Ok(8);
                }
                fd::to_int(number)
            }
            TOPICS_COUNT => {
                // Some pipes (inproc) do not announce new subscriptions.
                self.pattern.can_recv(&mut self.pipes);
                while self.pattern.has_more_to_do() {
                    self.pattern.can_recv(&mut self.pipes);
                }
                self.pattern.topics_count().ok_or(Error::Invalid)?.min(i32::MAX as usize) as i32
            }
            STATISTICS if out.len() >= 8 => {
                self.check_alive()?;
                return Ok(self.write_statistics(out));
            }
            STATISTICS => return Err(Error::Invalid),
            PEERS => return self.write_peers(out),
            STATISTIC..=STATISTIC_LAST => {
                self.check_alive()?;
                let number = self.statistics()[(code - STATISTIC) as usize];
                if let Some(place) = out.first_chunk_mut() {
                    *place = number.to_ne_bytes();
                    return Ok(8);
                }
                low_bits(number)
            }
            STATISTIC_HIGH..=STATISTIC_HIGH_LAST => {
                self.check_alive()?;
                low_bits(self.statistics()[(code - STATISTIC_HIGH) as usize] >> 31)
            }
            LAST_ENDPOINT => {
                let text = self.last_endpoint.as_bytes();
                let target = out.get_mut(..=text.len()).ok_or(Error::Invalid)?;
                target[..text.len()].copy_from_slice(text);
                target[text.len()] = 0;
                return Ok(text.len() + 1);
            }
            _ => return self.pipes.options.get(code, out),
        };
        out.get_mut(..4).ok_or(Error::Invalid)?.copy_from_slice(&number.to_ne_bytes());
        Ok(4)
    }

    /// ZMQ_EVENTS: returns the operations that are possible now. Resets the signal of ZMQ_FD.
    fn events(&mut self) -> Result<i32, Error> {
        self.inbox.waker().clear();
        let mut can = self.refresh(PollEvents { read: true, write: true }, true)?;
        can.write = can.write || self.request_room();
        self.found.lacks_room = !can.write;
        self.call_again();
        Ok((if can.read { POLLIN } else { 0 }) | (if can.write { POLLOUT } else { 0 }))
    }

    /// Prepares the socket for a program that reads ZMQ_FD: from now on the I/O thread listens
    /// whenever the owner is away, and every change is signalled.
    pub(super) fn expose(&mut self) -> Result<(), Error> {
        if self.inbox.is_exposed() {
            return Ok(());
        }
        self.inbox.waker().descriptor()?;
        self.inbox.expose();
        if let Some(set) = &self.set {
            set.acquire();
            set.release();
        }
        // Signal once, because earlier changes were not signalled.
        self.inbox.wake_if_parked();
        Ok(())
    }
}

/// The lower 31 bits of a number, so that the int is not negative.
fn low_bits(number: u64) -> i32 {
    (number & i32::MAX as u64) as i32
}
