from locust import HttpUser, constant, task


class Visitor(HttpUser):
    wait_time = constant(0.01)

    @task
    def ask(self):
        self.client.get("/")
