//! A tokio service with a graceful shutdown. It answers until it is stopped, finishes the current requests, and waits for a
//! limited time until its replies are sent. `cargo run --example tokio_service --features tokio`

use std::time::Duration;

use tautline::{Context, Rep, Req, Result, aio};
use tokio::sync::oneshot;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let context = Context::new();
    let mut service = Rep::builder(&context).linger(Duration::from_secs(1)).build()?.into_async();
    let endpoint = service.bind("tcp://127.0.0.1:*")?;
    // In a real service, `tokio::signal::ctrl_c()`.
    let (stop, stopped) = oneshot::channel();
    let running = tokio::spawn(serve(service, stopped));

    let mut client = Req::builder(&context).linger(Duration::ZERO).connect(&endpoint)?.into_async();
    for number in 1..=3 {
        client.send(number.to_string()).await?;
        println!("{number} squared is {}", client.recv().await?.to_string_lossy());
    }
    drop(client);
    stop.send(()).expect("the service still runs");
    assert_eq!(running.await.expect("the service does not panic")?, 3);

    // Waits until the replies are sent.
    aio::terminate(&context, Duration::from_secs(10)).await
}

/// Answers until `stop` is signalled. Returns the number of requests.
async fn serve(mut service: aio::Rep, mut stop: oneshot::Receiver<()>) -> Result<u32> {
    let mut answered = 0;
    loop {
        let question = tokio::select! {
            question = service.recv() => question?,
            _ = &mut stop => return Ok(answered),
        };
        let answer = match question.to_string_lossy().parse::<i64>() {
            Ok(number) => (number * number).to_string(),
            Err(_) => String::from("not a number"),
        };
        service.send(answer).await?;
        answered += 1;
    }
}
