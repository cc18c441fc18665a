//! Stop signal for tasks.

use tokio::sync::watch;

/// Sending end. Dropping it also asks to stop.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// Receiving end. All clones receive the same signal.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

/// Creates both ends.
pub fn pair() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Asks the tasks to stop.
    pub fn request_stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Returns when the task was asked to stop, or at once if that has happened.
    pub async fn wait_requested(&mut self) {
        // An error means that the `Stopper` was dropped.
        let _ = self.0.wait_for(|asked| *asked).await;
    }
}
