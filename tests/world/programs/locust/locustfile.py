"""Users of the small web server. The master writes its port to `master_port`, and quits after both workers reported requests."""

import gevent
from locust import HttpUser, constant, events, task
from locust.runners import MasterRunner

WORKERS = 2


class Visitor(HttpUser):
    wait_time = constant(0.01)

    @task
    def ask(self):
        self.client.get("/")


@events.init.add_listener
def watch(environment, runner, **_):
    if not isinstance(runner, MasterRunner):
        return
    with open("master_port", "w") as file:
        print(runner.server.port, file=file)
    reported = set()

    @environment.events.worker_report.add_listener
    def report(client_id, data, **_):
        if data["stats_total"]["num_requests"] == 0 or len(reported) == WORKERS:
            return
        reported.add(client_id)
        if len(reported) == WORKERS:
            gevent.spawn(runner.quit)
