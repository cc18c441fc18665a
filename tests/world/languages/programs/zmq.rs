fn main() {
    let context = zmq::Context::new();
    let (push, pull) = (context.socket(zmq::PUSH).unwrap(), context.socket(zmq::PULL).unwrap());
    pull.bind("tcp://127.0.0.1:*").unwrap();
    push.connect(&pull.get_last_endpoint().unwrap().unwrap()).unwrap();
    for number in 0..1000 {
        push.send(&format!("x{number}"), 0).unwrap();
        assert_eq!(pull.recv_string(0).unwrap().unwrap(), format!("x{number}"));
    }
    println!("ok");
}
