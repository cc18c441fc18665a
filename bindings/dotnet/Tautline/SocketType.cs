namespace Tautline
{
    /// <summary>The type of a socket, its role in a messaging pattern.</summary>
    public enum SocketType
    {
        /// <summary>Exchanges messages with one peer in both directions.</summary>
        Pair = 0,
        /// <summary>Publishes messages to all subscribers.</summary>
        Publisher = 1,
        /// <summary>Receives the messages that it has subscribed to.</summary>
        Subscriber = 2,
        /// <summary>Sends a request and waits for the reply.</summary>
        Request = 3,
        /// <summary>Receives requests and sends replies.</summary>
        Reply = 4,
        /// <summary>Sends requests to many peers without waiting for replies.</summary>
        Dealer = 5,
        /// <summary>Addresses each peer by its routing id, in any order.</summary>
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
