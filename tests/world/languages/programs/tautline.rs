use tautline::{Context, Pull, Push};

fn main() -> tautline::Result<()> {
    let context = Context::new();
    let (mut push, mut pull) = (Push::new(&context)?, Pull::new(&context)?);
    push.connect(&pull.bind("tcp://127.0.0.1:*")?)?;
    for number in 0..1000 {
        push.send(format!("x{number}"))?;
        assert_eq!(pull.recv()?, format!("x{number}").as_str());
    }
    println!("ok");
    Ok(())
}
