//! Topics of a socket in a report: its first subscriptions, and examples of published topics.

use tautline_core::host::TopicExample;
use tautline_observe::{Image, Topic};

/// Most published topics of a socket. A new one replaces the one that was not seen for longest.
const MOST: usize = 16;

/// Published topics of a socket.
#[derive(Default)]
pub(super) struct PublishedTopics(Vec<Topic>);

fn topic(socket: u64, published: bool, at: u64, example: TopicExample) -> Topic {
    let mut topic = Topic::default();
    (topic.socket, topic.published, topic.at) = (socket, published, at);
    (topic.prefix, topic.length) = (example.prefix, example.length as u64);
    topic
}

/// Records the subscriptions of a socket.
pub(super) fn put_subscriptions(socket: u64, subscriptions: Vec<TopicExample>, image: &mut Image) {
    subscriptions.into_iter().for_each(|example| image.put(&topic(socket, false, 0, example)));
}

impl PublishedTopics {
    /// Adds a topic that the socket published about `now`.
    pub(super) fn add(&mut self, socket: u64, example: TopicExample, now: u64) {
        let new = topic(socket, true, now, example);
        if let Some(known) = self.0.iter_mut().find(|known| known.prefix == new.prefix) {
            *known = new;
        } else if self.0.len() < MOST {
            self.0.push(new);
        } else if let Some(oldest) = self.0.iter_mut().min_by_key(|known| known.at) {
            *oldest = new;
        }
    }

    /// Records the topics.
    pub(super) fn put(&self, image: &mut Image) {
        self.0.iter().for_each(|topic| image.put(topic));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_topic_replaces_the_oldest() {
        let mut topics = PublishedTopics::default();
        let mut add = |name: usize, now| {
            let prefix = name.to_string().into_bytes();
            topics.add(7, TopicExample { length: prefix.len(), prefix }, now);
        };
        (0..MOST).for_each(|name| add(name, 1 + name as u64));
        add(0, 100);
        add(MOST, 101);
        let known: Vec<&[u8]> = topics.0.iter().map(|topic| &topic.prefix[..]).collect();
        assert!(known.contains(&&b"0"[..]) && known.contains(&&b"16"[..]) && !known.contains(&&b"1"[..]));
        assert_eq!(known.len(), MOST);
    }
}
