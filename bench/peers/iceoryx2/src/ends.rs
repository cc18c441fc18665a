//! One direction: a publish-subscribe service for bodies, and an event that wakes the receivers.

use crate::{Run, Trouble};
use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// Time for which a receiver looks before it waits for an event.
const LOOKING: Duration = Duration::from_micros(500);
/// A receiver looks again after this time without an event.
const PATIENCE: Duration = Duration::from_millis(20);

pub(crate) struct Sender {
    publisher: Publisher<ipc::Service, [u64], ()>,
    notifier: Notifier<ipc::Service>,
    _node: Node<ipc::Service>,
}

pub(crate) struct Receiver {
    subscriber: Subscriber<ipc::Service, [u64], ()>,
    listener: Listener<ipc::Service>,
    _node: Node<ipc::Service>,
}

type Bodies = iceoryx2::service::port_factory::publish_subscribe::PortFactory<ipc::Service, [u64], ()>;
type Events = iceoryx2::service::port_factory::event::PortFactory<ipc::Service>;

fn services(run: &Run, direction: &str) -> Result<(Node<ipc::Service>, Bodies, Events), Trouble> {
    let node = NodeBuilder::new().create::<ipc::Service>().map_err(text)?;
    let name = |what: &str| ServiceName::new(&format!("{}/{direction}/{what}", run.name)).map_err(text);
    let bodies = node
        .service_builder(&name("bodies")?)
        .publish_subscribe::<[u64]>()
        .enable_safe_overflow(false)
        .history_size(0)
        .subscriber_max_buffer_size(run.queue)
        .max_subscribers(run.subscribers)
        .max_publishers(1)
        .open_or_create()
        .map_err(text)?;
    let events = node
        .service_builder(&name("events")?)
        .event()
        .max_listeners(run.subscribers)
        .open_or_create()
        .map_err(text)?;
    Ok((node, bodies, events))
}

fn text(error: impl std::fmt::Debug) -> Trouble {
    format!("{error:?}").into()
}

impl Sender {
    pub(crate) fn open(run: &Run, direction: &str, words: usize) -> Result<Self, Trouble> {
        let (node, bodies, events) = services(run, direction)?;
        let publisher = bodies
            .publisher_builder()
            .initial_max_slice_len(words)
            .max_loaned_samples(1)
            .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
            .create()
            .map_err(text)?;
        let notifier = events.notifier_builder().create().map_err(text)?;
        Ok(Sender { publisher, notifier, _node: node })
    }

    /// Sends a body of `words`, of which `write` writes the first and the last at least.
    pub(crate) fn send(
        &self,
        words: usize,
        write: impl FnOnce(&mut [MaybeUninit<u64>]),
    ) -> Result<(), Trouble> {
        let mut sample = self.publisher.loan_slice_uninit(words).map_err(text)?;
        write(sample.payload_mut());
        // SAFETY: any bytes are a u64, and the memory of the service is initialised by the system.
        let sample = unsafe { sample.assume_init() };
        sample.send().map_err(text)?;
        // A full queue of events wakes the receiver, too.
        let _ = self.notifier.notify();
        Ok(())
    }
}

impl Receiver {
    pub(crate) fn open(run: &Run, direction: &str) -> Result<Self, Trouble> {
        let (node, bodies, events) = services(run, direction)?;
        let subscriber = bodies.subscriber_builder().create().map_err(text)?;
        let listener = events.listener_builder().create().map_err(text)?;
        Ok(Receiver { subscriber, listener, _node: node })
    }

    /// Receives one body, and returns the result of `read`.
    pub(crate) fn receive<T>(&self, read: impl FnOnce(&[u64]) -> T) -> Result<T, Trouble> {
        let mut began = None;
        loop {
            if let Some(sample) = self.subscriber.receive().map_err(text)? {
                return Ok(read(sample.payload()));
            }
            if began.get_or_insert_with(Instant::now).elapsed() < LOOKING {
                std::hint::spin_loop();
            } else {
                self.listener.timed_wait(|_| {}, PATIENCE).map_err(text)?;
            }
        }
    }
}
