"""stub"""


class Places:
    def __init__(self, text):
        self.text = text

    def all_of(self, q):
        out = []
        i = self.text.find(q) if q else -1
        while i >= 0:
            out.append((i, i + len(q)))
            i = self.text.find(q, i + len(q))
        return tuple(out)

    def of(self, q):
        return next(iter(self.all_of(q)), None)
