//! Serialization of events, statistics, errors, keys and messages: the feature `serde`.
//!
//! The types implement `Serialize` of the crate `serde`. They implement `Deserialize` if a value
//! can be restored from its serialized form. Use self-describing formats: JSON, CBOR, MessagePack,
//! YAML.
//!
//! ```
//! # #[cfg(feature = "serde")] {
//! use tautline::monitor::{Event, EventKind};
//!
//! let line = r#"{"event":"bind_failed","errno":98,"local":"127.0.0.1:5555","remote":""}"#;
//! let event: Event = serde_json::from_str(line).unwrap();
//! assert_eq!(event.kind, EventKind::BindFailed(98));
//! assert_eq!(serde_json::to_string(&event).unwrap(), line);
//! # }
//! ```
//!
//! The tables show the JSON of every value. This form is stable. Fields and values may be added, so
//! a reader must ignore unknown fields. The name of a number includes its unit: `after_ms` is in
//! milliseconds. An `errno` belongs to the system that wrote it.
//!
//! # Events
//!
//! A [`monitor::Event`](crate::monitor::Event) is one flat map. `event` is the name of its
//! [`EventKind`](crate::monitor::EventKind), and `error` the
//! [`HandshakeError`](crate::monitor::HandshakeError). Empty `claim` and `reason` fields are
//! omitted. Serialized and deserialized.
//!
//! | kind | JSON |
//! |---|---|
//! | `Connected` | `{"event":"connected","local":"tcp://10.0.0.1:40000","remote":"tcp://10.0.0.2:5555"}` |
//! | `ConnectDelayed` | `{"event":"connect_delayed","local":"","remote":"tcp://10.0.0.2:5555"}` |
//! | `ConnectRetried` | `{"event":"connect_retried","after_ms":250,"local":"","remote":"tcp://10.0.0.2:5555"}` |
//! | `Listening` | `{"event":"listening","local":"tcp://10.0.0.2:5555","remote":""}` |
//! | `BindFailed` | `{"event":"bind_failed","errno":98,"local":"10.0.0.2:5555","remote":""}` |
//! | `Accepted` | `{"event":"accepted","local":"tcp://10.0.0.2:5555","remote":"tcp://10.0.0.1:40000"}` |
//! | `AcceptFailed` | `{"event":"accept_failed","errno":24,"local":"tcp://10.0.0.2:5555","remote":""}` |
//! | `Closed` | `{"event":"closed","local":"tcp://10.0.0.2:5555","remote":""}` |
//! | `CloseFailed` | `{"event":"close_failed","errno":9,"local":"tcp://10.0.0.2:5555","remote":""}` |
//! | `Disconnected` | `{"event":"disconnected","local":"tcp://10.0.0.2:5555","remote":"tcp://10.0.0.1:40000"}` |
//! | `HandshakeSucceeded` | `{"event":"handshake_succeeded","local":"tcp://10.0.0.2:5555","remote":"tcp://10.0.0.1:40000"}` |
//! | `HandshakeFailed(Io)` | `{"event":"handshake_failed","error":"io","errno":32,"local":"tcp://10.0.0.2:5555","remote":"tcp://10.0.0.1:40000"}` |
//! | `HandshakeFailed(Protocol)` | `{"event":"handshake_failed","error":"protocol","code":285212674,"local":"tcp://10.0.0.2:5555","remote":"tcp://10.0.0.1:40000"}` |
//! | `HandshakeFailed(Refused)`, CURVE | `{"event":"handshake_failed","error":"refused","status":400,"local":"tcp://10.0.0.2:5555","remote":"tcp://10.0.0.1:40000","claim":{"mechanism":"curve","public_key":"Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"},"reason":"unknown key"}` |
//! | `HandshakeFailed(Refused)`, PLAIN | `{"event":"handshake_failed","error":"refused","status":300,"local":"tcp://10.0.0.2:5555","remote":"tcp://10.0.0.1:40000","claim":{"mechanism":"plain","username":"joe"},"reason":"closed on Sundays"}` |
//! | `TopicRefused` | `{"event":"topic_refused","local":"tcp://10.0.0.2:5555","remote":"tcp://10.0.0.1:40000"}` |
//! | `NameChanged` | `{"event":"name_changed","local":"","remote":"name://orders"}` |
//! | `ResolverFailed` | `{"event":"name_away","errno":113,"local":"","remote":"name://orders"}` |
//! | `Stopped` | `{"event":"stopped","local":"","remote":""}` |
//! | `Other` | `{"event":"other","number":65536,"values":[5,6],"local":"","remote":""}` |
//!
//! # Statistics
//!
//! [`monitor::Statistics`](crate::monitor::Statistics) by the names of their fields. Serialized and
//! deserialized.
//!
//! | numbers | JSON |
//! |---|---|
//! | `Statistics` | `{"messages_sent":1,"bytes_sent":2,"messages_received":3,"bytes_received":4,"dropped_full":5,"dropped_unroutable":6,"lost":7,"queued_out":8,"queued_in":9,"peers":10,"reconnects":11,"failed_connects":12,"failed_handshakes":13,"topics_refused":14}` |
//!
//! # Errors
//!
//! An [`Error`](crate::Error) is only serialized: its text belongs to this version, its number to
//! this system. `endpoint`, `socket` and `reason` are present if they are known. `message` is for
//! humans, and may change.
//!
//! | error | JSON |
//! |---|---|
//! | `WouldBlock` | `{"error":"would_block","errno":11,"message":"no message to receive, or no room to send"}` |
//! | `TimedOut` | `{"error":"timed_out","errno":11,"message":"the time limit has passed"}` |
//! | `Terminated` | `{"error":"terminated","errno":156384765,"message":"the context was terminated"}` |
//! | `Interrupted` | `{"error":"interrupted","errno":4,"message":"interrupted by a signal"}` |
//! | `WrongState` | `{"error":"wrong_state","turn":"send_question","errno":156384763,"message":"REQ must send a request first"}` |
//! | `Unroutable` | `{"error":"unroutable","errno":113,"message":"no peer has this routing id"}` |
//! | `Invalid` | `{"error":"invalid","errno":22,"message":"a routing id has 1 to 255 bytes, not 0"}` |
//! | `MalformedEndpoint` | `{"error":"malformed_endpoint","reason":"no_port","endpoint":"tcp://localhost","socket":"PULL","errno":22,"message":"tcp://localhost: the endpoint has no port: the address is host:port"}` |
//! | `MalformedKey` | `{"error":"malformed_key","reason":"length","errno":22,"message":"a key in Z85 must have 40 characters, not 5"}` |
//! | `UnknownTransport` | `{"error":"unknown_transport","endpoint":"pigeon://x","socket":"PULL","errno":93,"message":"pigeon://x: the transport is not known, or not built in (wss and tls+tcp need the feature tls)"}` |
//! | `WrongTransport` | `{"error":"wrong_transport","endpoint":"udp://127.0.0.1:5555","socket":"PULL","errno":156384764,"message":"udp://127.0.0.1:5555: PULL sockets do not support this transport"}` |
//! | `NotSupported` | `{"error":"not_supported","errno":95,"message":"the socket type does not support this"}` |
//! | `AddressInUse` | `{"error":"address_in_use","endpoint":"inproc://work","socket":"PULL","errno":98,"message":"inproc://work: the address is in use"}` |
//! | `AddressNotAvailable` | `{"error":"address_not_available","errno":99,"message":"the address does not belong to this machine"}` |
//! | `NoSuchDevice` | `{"error":"no_such_device","errno":19,"message":"there is no network interface or host of this name"}` |
//! | `ConnectionRefused` | `{"error":"connection_refused","errno":111,"message":"no socket is bound to the address"}` |
//! | `NotFound` | `{"error":"not_found","errno":2,"message":"this socket has no such endpoint, or the file or directory does not exist"}` |
//! | `TooManyOpen` | `{"error":"too_many","errno":24,"message":"too many sockets or open files"}` |
//! | `MessageTooLong` | `{"error":"message_too_long","errno":90,"message":"the message is too long"}` |
//! | `NameTooLong` | `{"error":"name_too_long","errno":36,"message":"the path or address is too long"}` |
//! | `OutOfMemory` | `{"error":"out_of_memory","errno":12,"message":"out of memory"}` |
//! | `Os` | `{"error":"os","errno":13,"message":"Permission denied (os error 13)"}` |
//!
//! The components of errors are serialized and deserialized: a
//! [`ExpectedStep`](crate::error::ExpectedStep), an
//! [`EndpointError`](crate::endpoint::EndpointError), and as separate values a
//! [`KeyError`](crate::curve::KeyError) and a [`HandshakeError`](crate::monitor::HandshakeError).
//!
//! | part of an error | JSON |
//! |---|---|
//! | `ExpectedStep::ReceiveAnswer` | `"receive_answer"` |
//! | `ExpectedStep::SendQuestion` | `"send_question"` |
//! | `ExpectedStep::ReceiveQuestion` | `"receive_question"` |
//! | `ExpectedStep::SendAnswer` | `"send_answer"` |
//! | `ExpectedStep::Other` | `"other"` |
//! | `EndpointError::NoTransport` | `"no_transport"` |
//! | `EndpointError::NoAddress` | `"no_address"` |
//! | `EndpointError::UnknownTransport` | `"unknown_transport"` |
//! | `EndpointError::NoPort` | `"no_port"` |
//! | `EndpointError::Port` | `"port"` |
//! | `EndpointError::NoHost` | `"no_host"` |
//! | `EndpointError::NotConnectable` | `"not_connectable"` |
//! | `EndpointError::PathTooLong` | `"path_too_long"` |
//! | `EndpointError::Address` | `"address"` |
//! | `KeyError::Length` | `{"error":"length","bytes":5}` |
//! | `KeyError::NotZ85` | `{"error":"not_z85"}` |
//! | `HandshakeError::Io` | `{"error":"io","errno":32}` |
//! | `HandshakeError::Protocol` | `{"error":"protocol","code":285212674}` |
//! | `HandshakeError::Refused` | `{"error":"refused","status":400}` |
//!
//! # Keys and authentication
//!
//! A [`PublicKey`](crate::curve::PublicKey) and a [`Claim`](crate::monitor::Claim) are serialized
//! and deserialized. A [`SecretKey`](crate::curve::SecretKey) is only deserialized, for example
//! from a configuration file; the source text is not wiped. A [`zap::Request`](crate::zap::Request)
//! and its [`Credentials`](crate::zap::Credentials) are serialized without the password, so they
//! cannot be deserialized. A [`Verdict`](crate::zap::Verdict) is serialized and deserialized, so
//! another program can decide about peers. Empty `reason`, `user_id` and `properties` fields are
//! omitted.
//!
//! | key or peer | JSON |
//! |---|---|
//! | `PublicKey` | `"Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"` |
//! | `Claim::Plain` | `{"mechanism":"plain","username":"joe"}` |
//! | `Claim::Curve` | `{"mechanism":"curve","public_key":"Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"}` |
//! | `Request`, NULL | `{"domain":"shop","address":"127.0.0.1","routing_id":[],"credentials":{"mechanism":"null"}}` |
//! | `Request`, PLAIN | `{"domain":"shop","address":"127.0.0.1","routing_id":[],"credentials":{"mechanism":"plain","username":"joe"}}` |
//! | `Request`, CURVE | `{"domain":"shop","address":"127.0.0.1","routing_id":[105,100],"credentials":{"mechanism":"curve","public_key":"Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"}}` |
//! | `Verdict::admit` | `{"verdict":"admitted","user_id":"alice","properties":[["Role","admin"]]}` |
//! | `Verdict::defer` | `{"verdict":"later","reason":"closed on Sundays"}` |
//! | `Verdict::refuse` | `{"verdict":"refused","reason":"unknown key"}` |
//!
//! # Messages and names
//!
//! A [`Message`](crate::Message) is its bytes: a list of numbers in JSON, or bytes in formats with
//! a byte type. Like a clone, it does not contain the properties of its sender. It can also be
//! deserialized from text. A [`RoutingId`](crate::RoutingId) must have 1 to 255 bytes. A
//! [`PeerId`](crate::PeerId) is only serialized, because it is valid for one connection of one
//! socket. A [`SocketType`](crate::kind::SocketType) has its name in the protocol.
//!
//! | message or name | JSON |
//! |---|---|
//! | `Message` | `[104,105]` |
//! | `Multipart` | `[[116,111],[],[104,105]]` |
//! | `RoutingId` | `[105,100]` |
//! | `SocketType` | `"PULL"` |

#[cfg(feature = "serde")]
mod bytes;
#[cfg(feature = "serde")]
mod error;
#[cfg(feature = "serde")]
mod event;
#[cfg(feature = "serde")]
mod text;
#[cfg(feature = "serde")]
mod zap;

#[cfg(feature = "serde")]
pub(crate) use error::KeyErrorForm;
#[cfg(feature = "serde")]
pub(crate) use event::{EventKindForm, HandshakeErrorForm};
