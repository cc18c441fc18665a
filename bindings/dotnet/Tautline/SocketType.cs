namespace Tautline
{
    /// <summary>The pattern that a socket plays a part in.</summary>
    public enum SocketType
    {
        /// <summary>One peer, both ways.</summary>
        Pair = 0,
        /// <summary>Publishes to all that subscribe.</summary>
        Publisher = 1,
        /// <summary>Receives what it has subscribed to.</summary>
        Subscriber = 2,
        /// <summary>Asks, and waits for the answer.</summary>
        Request = 3,
        /// <summary>Answers.</summary>
        Reply = 4,
        /// <summary>Asks many without waiting.</summary>
        Dealer = 5,
        /// <summary>Answers by name, in any order.</summary>
        Router = 6,
        /// <summary>Collects work.</summary>
        Pull = 7,
        /// <summary>Distributes work.</summary>
        Push = 8,
        /// <summary>A publisher that sees the subscriptions.</summary>
        XPublisher = 9,
        /// <summary>A subscriber that sends its subscriptions as messages.</summary>
        XSubscriber = 10,
        /// <summary>Plain TCP.</summary>
        Stream = 11,
    }
}
