//! How a task is asked to end, and how it hears of it.

use tokio::sync::watch;

/// The end that asks. Dropped, it has asked.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// The end that hears; every clone hears the same.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

/// Both ends.
pub fn pair() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Asks.
    pub fn ask(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Returns once it was asked, at once if that was before.
    pub async fn asked(&mut self) {
        // An error is a `Stopper` that is gone.
        let _ = self.0.wait_for(|asked| *asked).await;
    }
}
