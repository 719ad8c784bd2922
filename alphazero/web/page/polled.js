// A view that asks its server again and again, as long as it is looked at.

export class PolledView {
  constructor(pause) {
    this.pause = pause;
  }

  async shown() {
    this.visible = true;
    await this.poll();
    clearInterval(this.timer);
    if (!this.visible) return;
    this.timer = setInterval(() => !document.hidden && this.poll(), this.pause);
  }

  hidden() {
    this.visible = false;
    clearInterval(this.timer);
  }

  // `chosen`: somebody has made a choice, which is looked up at once.
  async poll(chosen = false) {
    if (this.polling) {
      this.again ||= chosen;
      return;
    }
    this.polling = true;
    try {
      do {
        this.again = false;
        await this.look();
      } while (this.again);
    } catch (error) {
      this.fail(error);
    } finally {
      this.polling = false;
    }
  }
}
