//! CURVE in each of the four programs.

use languages_rust_zmq::Keys;

/// Sets the keys of CURVE, if the environment has some.
pub fn secure(socket: &zmq::Socket) -> Result<(), zmq::Error> {
    match Keys::read() {
        None => Ok(()),
        Some(Keys::Server { secret }) => {
            socket.set_curve_server(true)?;
            socket.set_curve_secretkey(&key(&secret)?)
        }
        Some(Keys::Client { secret, public, server }) => {
            socket.set_curve_serverkey(&key(&server)?)?;
            socket.set_curve_publickey(&key(&public)?)?;
            socket.set_curve_secretkey(&key(&secret)?)
        }
    }
}

fn key(text: &str) -> Result<Vec<u8>, zmq::Error> {
    zmq::z85_decode(text).map_err(|_| zmq::Error::EINVAL)
}
