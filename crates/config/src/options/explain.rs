//! Explanations of refused options, for the author of the program.

use tautline_proto::SocketType;

use super::row::Form;
use super::socket_codes::{SUBSCRIBE, UNSUBSCRIBE, name_of};
use super::table::find;

/// The name of an option in zmq.h.
pub fn option_name(code: i32) -> Option<&'static str> {
    find(code).map(|row| row.name).or_else(|| name_of(code))
}

/// Explains why a socket of this type has refused an option value as invalid. Gives the option's
/// name in zmq.h and shows numbers. Does not show bytes and texts, because some are secrets.
pub fn option_fault(socket_type: SocketType, code: i32, value: &[u8]) -> String {
    let Some(row) = find(code) else {
        return match name_of(code) {
            Some(name) if [SUBSCRIBE, UNSUBSCRIBE].contains(&code) => {
                explain_missing_option(name, socket_type)
            }
            Some(name) => format!("{name} can only be read"),
            None => format!("there is no option {code}"),
        };
    };
    let name = row.name;
    if !row.types.contains(socket_type) {
        return explain_missing_option(name, socket_type);
    }
    let (size, number) = match row.form {
        Form::Int(_, None) => return format!("{name} can only be read"),
        Form::Int(..) => (size_of::<i32>(), value.try_into().ok().map(|v| i128::from(i32::from_ne_bytes(v)))),
        Form::Int64(..) => {
            (size_of::<i64>(), value.try_into().ok().map(|v| i128::from(i64::from_ne_bytes(v))))
        }
        Form::Uint64(..) => {
            (size_of::<u64>(), value.try_into().ok().map(|v| i128::from(u64::from_ne_bytes(v))))
        }
        Form::Key(..) => return format!("{name} is a key: 32 bytes, or 40 characters of Z85"),
        Form::Text(..) | Form::Binary(..) => {
            return format!("{name} does not take this value of {} bytes", value.len());
        }
    };
    match number {
        Some(number) => format!("{name} does not take the value {number}"),
        None => format!("{name} needs a value of {size} bytes, not {}", value.len()),
    }
}

/// Explains why an option could not be read into a buffer of this size.
pub fn option_read_fault(code: i32, size: usize) -> String {
    match find(code).map(|row| (row.name, row.form)) {
        Some((name, Form::Int(None, _) | Form::Text(None, _) | Form::Binary(None, _))) => {
            format!("{name} can only be set")
        }
        Some((name, _)) => format!("{name} does not fit into a buffer of {size} bytes"),
        None => match name_of(code) {
            Some(name) if [SUBSCRIBE, UNSUBSCRIBE].contains(&code) => format!("{name} can only be set"),
            Some(name) => format!("{name} cannot be read in this form, or not on this socket"),
            None => format!("there is no option {code}"),
        },
    }
}

fn explain_missing_option(name: &str, socket_type: SocketType) -> String {
    format!("{} sockets have no {name}", socket_type.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_option_is_explained_without_secrets() {
        let int = |value: i32| value.to_ne_bytes();
        for (socket_type, code, value, text) in [
            (SocketType::Pull, 9999, &[][..], "there is no option 9999"),
            (SocketType::Pull, 6, b"a", "PULL sockets have no ZMQ_SUBSCRIBE"),
            (SocketType::Pull, 40, &int(1), "PULL sockets have no ZMQ_XPUB_VERBOSE"),
            (SocketType::Pull, 23, &int(-5), "ZMQ_SNDHWM does not take the value -5"),
            (SocketType::Pull, 23, b"abc", "ZMQ_SNDHWM needs a value of 4 bytes, not 3"),
            (SocketType::Pull, 15, &int(0), "ZMQ_EVENTS can only be read"),
            (SocketType::Pull, 46, b"", "ZMQ_PLAIN_PASSWORD does not take this value of 0 bytes"),
            (
                SocketType::Pull,
                49,
                b"four",
                "ZMQ_CURVE_SECRETKEY is a key: 32 bytes, or 40 characters of Z85",
            ),
            (
                SocketType::Pub,
                0x5441_0010,
                &[0; 8],
                "ZMQ_TAUTLINE_MAX_SUBSCRIPTIONS does not take the value 0",
            ),
        ] {
            assert_eq!(option_fault(socket_type, code, value), text);
        }
    }

    #[test]
    fn option_read_error_is_explained() {
        assert_eq!(option_read_fault(9999, 4), "there is no option 9999");
        assert_eq!(option_read_fault(23, 3), "ZMQ_SNDHWM does not fit into a buffer of 3 bytes");
        assert_eq!(option_read_fault(110, 4), "ZMQ_HELLO_MSG can only be set");
        assert_eq!(option_read_fault(7, 4), "ZMQ_UNSUBSCRIBE can only be set");
    }
}
