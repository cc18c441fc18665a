//! A broker between clients and async workers: ROUTER in front, DEALER behind. `cargo run --example async_workers --features tokio`

use tautline::{Context, Dealer, Error, Rep, Req, Result, Router};

#[tokio::main]
async fn main() -> Result<()> {
    let context = Context::new();
    let mut frontend = Router::new(&context)?.into_async();
    let mut backend = Dealer::new(&context)?.into_async();
    let (front, back) = (frontend.bind("tcp://127.0.0.1:*")?, backend.bind("tcp://127.0.0.1:*")?);

    // Whole messages pass, with the envelope that routes the reply back to its client.
    let broker = tokio::spawn(async move {
        loop {
            tokio::select! {
                question = frontend.recv_multipart() => backend.send_multipart(question?).await?,
                answer = backend.recv_multipart() => frontend.send_multipart(answer?).await?,
            }
        }
        #[allow(unreachable_code)]
        Ok::<(), Error>(())
    });

    for name in 0..3 {
        let mut worker = Rep::builder(&context).connect(&back)?.into_async();
        tokio::spawn(async move {
            while let Ok(question) = worker.recv().await {
                let answer = format!("worker {name} says: {}", question.to_string_lossy().to_uppercase());
                if worker.send(answer).await.is_err() {
                    break;
                }
            }
        });
    }

    let clients = (0..4).map(|number| {
        let client = Req::builder(&context).connect(&front).map(Req::into_async);
        tokio::spawn(async move {
            let mut client = client?;
            client.send(format!("question {number}")).await?;
            client.recv().await
        })
    });
    for client in clients.collect::<Vec<_>>() {
        let answer = client.await.expect("a client does not panic")?;
        println!("{}", answer.to_string_lossy());
        assert!(answer.to_string_lossy().contains("says: QUESTION"));
    }

    context.shutdown();
    assert_eq!(broker.await.expect("the broker does not panic"), Err(Error::Terminated));
    Ok(())
}
